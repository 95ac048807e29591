"""One tool times all cases in a process of its own: ``python -m benchmarks.crosscheck.side``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.crosscheck.cases import CASES
from nqbench.errors import NqbenchError


def main() -> int:
    """Write the samples of every case to ``--out``; 1 with one sentence if that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=("nqbench", "nvbench"))
    parser.add_argument("cases", nargs="+", choices=sorted(CASES))
    parser.add_argument("--gpu", type=int, required=True)
    parser.add_argument("--cold", action="store_true", help="nqbench: flush L2 before each launch")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    cases = [CASES[name] for name in given.cases]
    try:
        if given.tool == "nqbench":
            from benchmarks.crosscheck import side_nqbench

            found = side_nqbench.time_cases(cases, given.gpu, cold=given.cold)
        else:
            from benchmarks.crosscheck import side_nvbench

            found = side_nvbench.time_cases(cases, given.gpu)
    except NqbenchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    given.out.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
