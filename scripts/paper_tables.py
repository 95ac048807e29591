"""Write the tables of effects in docs/papers.md and experiments/*/README.md (part of `make docs`).

    python scripts/paper_tables.py

A line names a claim and a size; its numbers and words come from the committed verdicts in
plots/reference/papers. A test holds the pages equal to what this writes.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from nqbench.papers import load_paper

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = (ROOT / "docs" / "papers.md", *sorted(ROOT.glob("experiments/*/README.md")))
HEAD: Final = "| effect | claim | N | paper | H100 | H200 | verdict |"
DEVICES: Final = {"H100": "NVIDIA H100 80GB HBM3 (cuda:0)", "H200": "NVIDIA H200 (cuda:0)"}
COUNTED: Final = "enumerated on the CPU"
NONE: Final = "\N{EN DASH}"

Row = dict[str, str]


def main() -> int:
    """Write the pages; list those that changed."""
    for page in PAGES:
        if (text := written(page)) != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            sys.stderr.write(f"paper_tables: {page.relative_to(ROOT)} has changed\n")
    return 0


def written(page: Path) -> str:
    """The page's text with its table of effects made anew. ``KeyError`` for an unknown claim."""
    lines = page.read_text(encoding="utf-8").splitlines()
    first = lines.index(HEAD) + 2
    for at in range(first, len(lines)):
        if not lines[at].startswith("|"):
            break
        cells = [cell.strip() for cell in lines[at].strip("|").split("|")]
        lines[at] = f"| {' | '.join(effect(page, cells))} |"
    return "\n".join(lines) + "\n"


def effect(page: Path, cells: Sequence[str]) -> list[str]:
    """A line of a table."""
    shown, n = cells[1], cells[2]
    paper, _, claim = shown.strip("`").rpartition(".")
    paper = paper or page.parent.name
    rows = judged(paper)
    found = [rows.get((claim, n, d)) or rows.get((claim, n, COUNTED)) for d in DEVICES.values()]
    there = [row for row in found if row]
    if not there:
        load_paper(paper).claim(claim)
        return [cells[0], shown, n, *[NONE] * 3, "not judged"]
    whole = judged(paper, by_size=False)
    words = {}
    for device, row in zip(DEVICES, found, strict=True):
        if row:  # the claim's word; that of this size alone where it differs
            word, here = verdict(whole[claim, "", row["device"]]), verdict(row)
            words[device] = word if word == here else f"{word} (this N: {here})"
    if len(set(words.values())) > 1 or len(there) == 1:
        word = "; ".join(f"{device}: {word}" for device, word in words.items())
    else:
        word = next(iter(words.values()))
    word += "*" * any(row.get("asked_of") for row in there)
    values = [measured(row) if row else NONE for row in found]
    return [cells[0], shown, n, published(paper, there[0]["paper"]), *values, word]


@cache
def judged(paper: str, *, by_size: bool = True) -> dict[tuple[str, str, str], Row]:
    """Rows of a paper's committed verdicts by claim, N (empty if not ``by_size``) and device."""
    name = f"table-claims-{paper.replace('_', '-')}{'-by-size' * by_size}.csv"
    file = ROOT / "plots" / "reference" / "papers" / paper / name
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        return {(row["claim"], row.get("N", ""), row["device"]): row for row in rows}


def measured(row: Row) -> str:
    """Value with its interval, to three digits."""
    if not row["value"]:
        return row["other_value"] or NONE
    value, *ends = (float(row[name]) for name in ("value", "value_low", "value_high") if row[name])
    return f"{digits(value)} [{digits(ends[0])}, {digits(ends[1])}]" if ends else digits(value)


def digits(value: float) -> str:
    """Three significant ones, whole numbers in full."""
    whole = abs(value) >= 100 or value.is_integer()
    return f"{value:,.0f}" if whole else f"{value:#.3g}"


def verdict(row: Row) -> str:
    """Both words."""
    return ", ".join(word for word in (row["verdict"], row.get("size", "")) if word)


def published(paper: str, text: str) -> str:
    """The paper's value; where it has one for each device, with the last two words of its name."""
    known = {device.id: device.name for device in load_paper(paper).hardware}
    parts = [part.split(": ") for part in text.split(", ")] if ": " in text else []
    if not parts or any(part[0] not in known for part in parts):
        return text.replace("_", " ") or NONE
    return ", ".join(f"{part[1]} ({' '.join(known[part[0]].split()[-2:])})" for part in parts)


if __name__ == "__main__":
    sys.exit(main())
