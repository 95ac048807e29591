"""Tables of the prose that show recorded numbers: effects with verdicts, run times of the papers.

After new runs or verdicts, ``python -m tests.docs.test_paper_tables`` writes them again.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nqbench.papers import load_paper

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "findings.md",
    *sorted((ROOT / "experiments").glob("*/README.md")),
]
EFFECTS = "| effect | claim | N | paper | H100 | H200 | verdict |"
RUN_TIMES = "| paper | H100 | H200 | simulator |"
DEVICES = {"H100": "NVIDIA H100 80GB HBM3 (cuda:0)", "H200": "NVIDIA H200 (cuda:0)"}
COUNTED = "enumerated on the CPU"
NONE = "\N{EN DASH}"


@cache
def judged(paper: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """Rows of a paper's committed verdicts by claim, N and device."""
    name = f"table-claims-{paper.replace('_', '-')}-by-size.csv"
    file = ROOT / "plots" / "reference" / "papers" / paper / name
    with file.open(encoding="utf-8", newline="") as lines:
        return {(row["claim"], row["N"], row["device"]): row for row in csv.DictReader(lines)}


def effect(page: Path, cells: Sequence[str]) -> list[str]:
    """A line of a table of effects. ``KeyError`` for an unknown claim."""
    shown, n = cells[1], cells[2]
    paper, _, claim = shown.strip("`").rpartition(".")
    paper = paper or page.parent.name
    key = (claim, n.replace("any", ""))
    found = [
        judged(paper).get((*key, device)) or judged(paper).get((*key, COUNTED))
        for device in DEVICES.values()
    ]
    there = [row for row in found if row]
    if not there:
        load_paper(paper).claim(claim)
        return [cells[0], shown, n, *[NONE] * 3, "not judged"]
    values = [measured(row) if row else NONE for row in found]
    words = {device: verdict(row) for device, row in zip(DEVICES, found, strict=True) if row}
    each = "; ".join(f"{word} ({device})" for device, word in words.items())
    word = each if len(set(words.values())) > 1 or len(there) == 1 else verdict(there[0])
    asked = there[0].get("asked_of", "").removeprefix("compute capability ")
    word += f"; asked of {asked}" if asked else ""
    return [cells[0], shown, n, published(paper, there[0]["paper"]), *values, word]


def measured(row: dict[str, str]) -> str:
    """Value with its interval, to three digits."""
    if not row["value"]:
        return row["other_value"] or NONE
    value, *ends = (float(row[name]) for name in ("value", "value_low", "value_high") if row[name])
    return f"{digits(value)} [{digits(ends[0])}, {digits(ends[1])}]" if ends else digits(value)


def digits(value: float) -> str:
    whole = abs(value) >= 100 or value.is_integer()
    return f"{value:,.0f}" if whole else f"{value:#.3g}"


def verdict(row: dict[str, str]) -> str:
    """Both words."""
    return ", ".join(word for word in (row["verdict"], row.get("size", "")) if word)


def published(paper: str, text: str) -> str:
    """The paper's value; where it has one for each device, with the last two words of its name."""
    known = {device.id: device.name for device in load_paper(paper).hardware}
    parts = [part.split(": ") for part in text.split(", ")] if ": " in text else []
    if not parts or any(part[0] not in known for part in parts):
        return text.replace("_", " ") or NONE
    return ", ".join(f"{part[1]} ({' '.join(known[part[0]].split()[-2:])})" for part in parts)


def run_time(_page: Path, cells: Sequence[str]) -> list[str]:
    """A line of the table of run times: minutes and date of the recorded runs of a paper."""
    paper = cells[0].strip("`")
    return [cells[0], *(lasted(folder, paper) for folder in ("h100", "h200", "sim-mini"))]


def lasted(folder: str, paper: str) -> str:
    """Minutes from each start to its last record, and the date of the first."""
    run = ROOT / "results" / "reference" / folder / paper
    if not run.exists():
        return NONE
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    starts = [at(entry["started"]) for entry in manifest["history"]]
    ends = list(starts)
    for text in gzip.decompress((run / "records.jsonl.gz").read_bytes()).splitlines():
        record = json.loads(text)
        if record["started"]:
            end = at(record["started"]) + record["wall_s"]
            mine = max(i for i, start in enumerate(starts) if start <= end)
            ends[mine] = max(ends[mine], end)
    spent = sum(end - start for start, end in zip(starts, ends, strict=True))
    return f"{spent / 60:.1f} min, {datetime.fromtimestamp(starts[0], UTC):%Y-%m-%d}"


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


TABLES: dict[str, Callable[[Path, Sequence[str]], list[str]]] = {
    EFFECTS: effect,
    RUN_TIMES: run_time,
}


def written(page: Path) -> str:
    """The page's text with every such table made anew."""
    out: list[str] = []
    head = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        head = line if line in TABLES else head if line.startswith("|") else ""
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if head not in ("", line) and not line.startswith("|--"):
            line = f"| {' | '.join(TABLES[head](page, cells))} |"
        out.append(line)
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_numbers_are_those_recorded(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert any(head in text for head in TABLES)
    assert written(page) == text, "python -m tests.docs.test_paper_tables writes it again"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page), encoding="utf-8")
