"""Pack run folders that are to be kept: records.jsonl becomes records.jsonl.gz, with SHA256SUMS.

    .venv/bin/python scripts/pack_runs.py results/reference/h200/ablation ...

Packing is repeatable: the same records give the same bytes. ``sha256sum -c SHA256SUMS`` checks a
folder by hand; nqbench checks the sums whenever it reads one.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from pathlib import Path

from nqbench.runs.reading import MANIFEST, PACKED, RECORDS, SUMS, look_through


def pack(run: Path) -> None:
    """Pack one run folder. Raises ``StoreError`` for one that cannot be read."""
    found = look_through(run)
    if fault := found.damage or found.message():
        sys.exit(fault)
    if (run / RECORDS).exists():
        # A gzip file by zlib: the header that gzip.compress writes differs between Pythons.
        (run / PACKED).write_bytes(zlib.compress((run / RECORDS).read_bytes(), 9, wbits=31))
        (run / RECORDS).unlink()
    sums = [
        f"{hashlib.sha256((run / name).read_bytes()).hexdigest()}  {name}"
        for name in (MANIFEST, PACKED)
    ]
    (run / SUMS).write_text("\n".join(sums) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        pack(Path(argument))
