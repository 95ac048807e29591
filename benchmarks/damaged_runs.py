"""Recorded runs with values replaced at random: ends every command that reads them in a sentence?

    python -m benchmarks.damaged_runs [--count 50] [--seed 0]

A copy of a run gets one to three values of its manifest or records replaced by numbers, words and
containers that do not belong there, or taken out. Exit code 1 if a command ends otherwise than by
an exit code of its own: each such case is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.overhead import positive
from nqbench.cli import app
from nqbench.runs.reading import MANIFEST, RECORDS, record_bytes
from nqbench.system.crash import summary

REFERENCE = Path(__file__).parents[1] / "results" / "reference"
RUNS = (
    *("sim-mini/transpose", "sim-gtx480-cache-time/zhang2011", "cpu/external-program"),
    *("h200/tanaka2011_second", "h200/ceilings", "sim-mini/roofline_fitness"),
)
HUGE = int("9" * 401)
VALUES: tuple[Any, ...] = (
    *(0, -1, 1, -7, 10**30, 2**63, HUGE, -HUGE, 1e-300, 1e300, 5e-324, 0.5, True, None, "", "x"),
    *("a b", "9" * 500, "\0", "'", "../../x", "[", "{{7*7}}", "%s", "NaN", "1e999", "\ud800", "-"),
    *([], {}, [1], ["a"], [[]], {"a": 1}, {"per_sm": 0}, "2026-01-01", "0001-01-01T00:00:00Z"),
)
GONE = object()
Place = tuple[str | int, ...]


def places(data: Any, above: Place = ()) -> Iterator[Place]:
    """Where there are values, of long lists the first four."""
    entries = data.items() if isinstance(data, dict) else enumerate(data[:4])
    for step, value in entries:
        yield (*above, step)
        if isinstance(value, dict | list):
            yield from places(value, (*above, step))


def replace(data: Any, place: Place, value: object) -> None:
    """Replace a value; nothing happens where an earlier change has taken its place away."""
    with contextlib.suppress(LookupError, TypeError):
        for step in place[:-1]:
            data = data[step]
        if value is GONE:
            del data[place[-1]]
        else:
            data[place[-1]] = value


def damaged(dice: random.Random, run: Path, out: Path) -> list[str]:
    """Write a damaged copy of a run; what was changed."""
    manifest = json.loads((run / MANIFEST).read_bytes())
    records = [json.loads(line) for line in record_bytes(run).splitlines()]
    for record in records:
        record.pop("crc32", None)
    changed = []
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        value = dice.choice([*VALUES, GONE, GONE])
        part = dice.choice([manifest, dice.choice(records)])
        among = dice.choice(list(part))  # every part of it as often as the longest
        place = dice.choice([place for place in places(part) if place[0] == among])
        every = part is not manifest and dice.random() < 0.5
        for one in records if every else [part]:
            replace(one, place, value)
        changed.append(f"{place} = {'gone' if value is GONE else repr(value)[:40]}")
    out.mkdir()
    (out / MANIFEST).write_text(json.dumps(manifest))
    (out / RECORDS).write_text("".join(json.dumps(record) + "\n" for record in records))
    return changed


def ended(words: Sequence[object]) -> int | str:
    """The exit code of a command, or the exception that it ended in."""
    with (
        mock.patch.object(sys, "argv", ["nqbench", *map(str, words)]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            app.main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        except Exception as error:  # noqa: BLE001 (it is what is looked for)
            return summary(error)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many commands ended how; 1 if one ended in an exception."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=positive, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    dice, codes = random.Random(options.seed), Counter[int | str]()
    warnings.simplefilter("ignore")
    for _ in range(options.count):
        run = REFERENCE / dice.choice(RUNS)
        with tempfile.TemporaryDirectory() as name:
            copy, out = Path(name) / "run", Path(name) / "out"
            changed = damaged(dice, run, copy)
            reports = ("report", copy, "--out", out, *("-f", "md", "-f", "csv", "-f", "html"))
            paper = run.name.partition("_")[0] if "2011" in run.name else "zhang2011"
            others = [("compare", run, copy), ("report", copy, "--csv", "--out", out / "all.csv")]
            others += [("verify", copy), ("claims", copy, "--paper", paper)]
            for words in [reports, *others]:
                code = ended(words)
                codes[code] += 1
                if isinstance(code, str):
                    sys.stdout.write(f"{words[0]} {run.name}: {'; '.join(changed)}: {code}\n")
    sys.stdout.write(f"{dict(codes)}\n")
    return int(any(isinstance(code, str) for code in codes))


if __name__ == "__main__":
    sys.exit(main())
