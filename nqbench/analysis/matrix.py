"""The matrix of effects: how many times as fast each change makes a program, on every device.

Rows are the effects that the papers' files list, and the factors of an ablation. A cell is printed
by a paper for its own GPU, measured in a run, or simulated. Measured cells of papers come from the
calculation of the verdicts (``claims.judge``), so that both show the same digits; those of an
ablation are the main effects of its tables (``factorial.effects``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from nqbench.analysis.claims.judge import judge
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, timed_runs
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.factorial.design import swept_factors
from nqbench.analysis.factorial.effects import Effect as FactorEffect
from nqbench.analysis.factorial.effects import effects as factor_effects
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.papers.schema import DIRECTIONS, Claim, Effect, Paper

Provenance = Literal["printed", "measured", "simulated", "synthetic"]
SIMULATED: Final = quantity("issue_slots")
"""What stands for the time of a simulated kernel. It is not a time: its column says so."""
_MAKERS: Final = re.compile(r"\b(nvidia|geforce|tesla|quadro|gainward)\b", re.IGNORECASE)
_MEMORY: Final = re.compile(r"\s+\d+\s?GB\b.*$")


@dataclass(frozen=True, slots=True)
class Cell:
    """How many times as fast a change makes a program on one device, at size ``n``.

    ``printed``  what the paper says: its digits, or a word of ``DIRECTIONS`` (then no ``value``)
    """

    device: str
    provenance: Provenance
    value: Estimate | None
    n: int
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One change. ``group`` is its paper or its ablation; ``name`` its id within.

    ``reasons``  why a device of the runs has no cell, by device
    """

    group: str
    name: str
    label: str
    n: int
    cells: tuple[Cell, ...]
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def printed(self) -> tuple[Cell, ...]:
        """What the paper gives."""
        return tuple(cell for cell in self.cells if cell.provenance == "printed")

    def cell(self, device: str) -> Cell | None:
        """What a run on a device gives."""
        own = (c for c in self.cells if c.device == device and c.provenance != "printed")
        return next(own, None)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows, the runs behind them, and the devices of the runs: those with times first."""

    rows: tuple[Row, ...]
    devices: tuple[str, ...]
    runs: tuple[Observed, ...]

    @property
    def simulated(self) -> tuple[str, ...]:
        """Devices whose cells are ratios of counters."""
        cells = [c for row in self.rows for c in row.cells if c.provenance == "simulated"]
        return tuple(dict.fromkeys(cell.device for cell in cells))


def effects_matrix(runs: Sequence[Observed]) -> Matrix:
    """The matrix of some runs: of papers' studies and of ablations.

    Papers come in order of their years, then the ablations. Raises ``StudyError`` where two runs
    of a study share a device, or where no run says anything about an effect.
    """
    _refuse_doubles(runs)
    papers = sorted(
        (load_paper(name) for name in paper_names() if any(r.data.name == name for r in runs)),
        key=lambda paper: paper.source.year or 0,
    )
    known = {paper.id for paper in papers}
    rows = [
        row
        for paper in papers
        for row in paper_rows(paper, [run for run in runs if run.data.name == paper.id])
    ]
    studies = dict.fromkeys(run.data.name for run in runs if run.data.name not in known)
    for study in studies:
        rows += ablation_rows([run.data for run in runs if run.data.name == study])
    if not any(cell.provenance != "printed" for row in rows for cell in row.cells):
        raise StudyError(
            f"no effect can be computed from {', '.join(str(run.path) for run in runs)}: give timed"
            " runs of the papers (`nqbench reproduce zhang2011` makes one) or of an ablation"
            " (`nqbench run ablation`)"
        )
    filled = {cell.device for row in rows for cell in row.cells if cell.provenance != "printed"}
    ordered = sorted(runs, key=lambda run: (run.data.simulated, chip_of(run.data)))
    devices = dict.fromkeys(chip_of(run.data) for run in ordered)
    return Matrix(tuple(rows), tuple(d for d in devices if d in filled), tuple(runs))


def _refuse_doubles(runs: Sequence[Observed]) -> None:
    seen: dict[tuple[str, str], Observed] = {}
    for run in runs:
        first = seen.setdefault((run.data.name, chip_of(run.data)), run)
        if first is not run:
            raise StudyError(
                f"{first.path} and {run.path} are both runs of {run.data.name} on"
                f" {run.data.device}: a device has one column; give one of them"
            )


def chip(name: str) -> str:
    """A GPU's name without maker, family and memory: ``NVIDIA GeForce GTX480`` → ``GTX 480``."""
    bare = _MEMORY.sub("", _MAKERS.sub("", name))
    return " ".join(re.sub(r"\bGTX(?=\d)", "GTX ", bare).split()) or name


def chip_of(data: Dataset) -> str:
    """The device of a run as its column is called."""
    return data.spec if data.simulated else chip(data.device.removesuffix(f" ({data.spec})"))


# The papers.


def paper_rows(paper: Paper, runs: Sequence[Observed]) -> list[Row]:
    """The rows of a paper: what it prints, and what its timed runs measured."""
    asked = [(effect, n) for effect in paper.effects for n in effect.n]
    timed = timed_runs(runs)
    claims = [_asked(paper, effect, n) for effect, n in asked]
    verdicts = judge(paper.model_copy(update={"claims": claims}), timed) if timed else []
    found = {
        (verdict.claim.id, verdict.device): size for verdict in verdicts for size in verdict.sizes
    }
    rows = []
    for (effect, n), claim in zip(asked, claims, strict=True):
        cells = [
            _printed(chip(paper.device(device).name), n, text)
            for device, text in paper.printed(effect, n).items()
        ]
        reasons = []
        for run in timed:
            size = found.get((claim.id, run.data.device))
            if size is not None and isinstance(size.value, Estimate):
                cells.append(Cell(chip_of(run.data), _provenance(run.data), size.value, n))
            elif size is not None:
                reasons.append((chip_of(run.data), size.reason))
        row = Row(short(paper), effect.id, effect.label, n, tuple(cells), tuple(reasons))
        rows.append(row)
    return rows


def _printed(device: str, n: int, text: str) -> Cell:
    value = None if text in DIRECTIONS else Estimate(float(text))
    return Cell(device, "printed", value, n, text)


def short(paper: Paper) -> str:
    """A paper by its first author and year."""
    if not paper.source.authors:
        return paper.id
    return f"{paper.source.authors[0].split()[-1]} {paper.source.year or ''}".strip()


def _asked(paper: Paper, effect: Effect, n: int) -> Claim:
    """The claim behind an effect, asked at one size; its own formula as a claim."""
    name = f"{effect.id} N={n}"
    if effect.claim:
        claim = paper.claim(effect.claim)
        return claim.model_copy(update={"id": name, "n": [n]})
    return Claim(
        id=name,
        statement=effect.label,
        section="",
        n=[n],
        kind="ratio",
        expr=effect.expr,
        expect="value > 1",
        value_origin="qualitative",
        architecture_dependent=True,
    )


def _provenance(data: Dataset) -> Provenance:
    return "synthetic" if data.synthetic else "measured"


# Ablations.


def ablation_rows(runs: Sequence[Dataset]) -> list[Row]:
    """The main effects of the first sweep of a study that varies a factor: a row per level.

    Timed runs are shown at the largest size that all of them have, simulated ones at their own
    largest, by issue slots. A run without such a sweep has no cell.
    """
    found = {id(data): _main_effects(data) for data in runs}
    timed = [{e.n for e in found[id(d)]} for d in runs if not d.simulated and found[id(d)]]
    common = set.intersection(*timed) if timed else set()
    rows: dict[tuple[str, str, str, int], Row] = {}
    for data in sorted(runs, key=lambda data: data.simulated):
        sizes = {e.n for e in found[id(data)]}
        n = max((common & sizes) or sizes, default=0)
        for effect in found[id(data)]:
            if effect.n != n:
                continue
            change = effect.factor, str(effect.base), str(effect.level)
            shown = max(common) if data.simulated and common else n
            row = rows.setdefault((*change, shown), _row(data, effect, shown))
            provenance: Provenance = "simulated" if data.simulated else _provenance(data)
            cell = Cell(chip_of(data), provenance, effect.ratio.inverse(), n)
            rows[(*change, shown)] = replace(row, cells=(*row.cells, cell))
    return list(rows.values())


def _row(data: Dataset, effect: FactorEffect, n: int) -> Row:
    label = f"{effect.factor}: {effect.base} → {effect.level}"
    return Row(data.name, f"{effect.factor}_{effect.level}", label, n, ())


def _main_effects(data: Dataset) -> list[FactorEffect]:
    what = SIMULATED if data.simulated else TIME
    for sweep in _factorials(data):
        try:
            return factor_effects(data, sweep, what)
        except AnalysisError:
            continue
    return []


def _factorials(data: Dataset) -> Iterator[str]:
    """Sweeps that vary a factor, in the order of the study; the points tell which those are."""
    return (sweep for sweep in _in_order(data) if swept_factors(data, sweep))


def _in_order(data: Dataset) -> list[str]:
    listed = [str(entry.get("name")) for entry in data.study.get("sweeps") or ()]
    return sorted(data.sweeps, key=lambda s: listed.index(s) if s in listed else len(listed))
