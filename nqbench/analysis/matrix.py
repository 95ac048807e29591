"""The matrix of effects: the speed-up of each change on every device.

Rows are the effects that the papers' files list, and the factors of an ablation. A cell is printed
by a paper for its own GPU, modelled for that GPU, or measured in a run. Cells of papers come from
the calculation of the verdicts (``claims.judge``), so that both show the same digits; those of an
ablation are the main effects of its tables (``factorial.effects``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from nqbench.analysis.claims.judge import STRONGER, WEAKER, judge
from nqbench.analysis.data.dataset import Dataset, chip
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import modelled, of_own_gpu
from nqbench.analysis.data.quantities import TIME
from nqbench.analysis.factorial.effects import FactorEffect, effects
from nqbench.errors import AnalysisError
from nqbench.papers import load_paper, paper_names
from nqbench.papers.schema import DIRECTIONS, Claim, Effect, Paper

Provenance = Literal["printed", "modelled", "measured", "synthetic"]
Named = tuple[str, Dataset]
"""A run, and what its column is called."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """How many times as fast a change makes a program on one device, at size ``n``.

    ``printed``  what the paper says: its digits, or a word of ``DIRECTIONS`` (then no ``value``)
    """

    device: str
    provenance: Provenance
    value: Estimate | None
    n: int
    printed: str = ""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One change. ``group`` is its paper or its ablation; ``name`` its id within."""

    group: str
    name: str
    label: str
    n: int
    cells: tuple[MatrixCell, ...]

    def of(self, provenance: Provenance) -> tuple[MatrixCell, ...]:
        """What the paper prints, or what is modelled, for the paper's own GPUs."""
        return tuple(cell for cell in self.cells if cell.provenance == provenance)

    def cell(self, device: str) -> MatrixCell | None:
        """What a run on a device gives."""
        measured = (*self.of("measured"), *self.of("synthetic"))
        return next((cell for cell in measured if cell.device == device), None)

    def against_print(self, device: str) -> str:
        """How what a device gives stands to what is printed: ``agrees``, ``weaker``, ``stronger``
        as a verdict's size has it, ``reversed``, or ``unclear`` where its interval has both
        directions. Empty where either is missing."""
        cell, printed = self.cell(device), self.of("printed")
        if cell is None or cell.value is None or not printed:
            return ""
        value = cell.value.value
        if (cell.value.low or value) <= 1 <= (cell.value.high or value):
            return "unclear"
        words = dict(zip(DIRECTIONS, (math.inf, 0.0, 1.0), strict=True))
        numbers = [c.value.value if c.value else words[c.printed] for c in printed]
        alike = [p for p in numbers if p != 1 and (p > 1) == (value > 1)]
        if not alike:
            return "stronger" if 1 in numbers else "reversed"
        far = max(value, 1 / value) - 1  # 10 times slower is as far as 10 times faster
        shares = [far / (max(p, 1 / p) - 1) for p in alike if 0 < p < math.inf]
        if shares and max(shares) < WEAKER:
            return "weaker"
        return "stronger" if shares and min(shares) > STRONGER else "agrees"


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows, the devices of the runs, and the runs by device."""

    rows: tuple[MatrixRow, ...]
    devices: tuple[str, ...]
    runs: tuple[Named, ...]


def effects_matrix(runs: Sequence[Dataset]) -> Matrix:
    """The matrix of some runs: of papers' studies and of ablations.

    Papers come in order of their years, then the ablations. Raises ``AnalysisError`` where no run
    says anything about an effect.
    """
    named = _named([run for run in runs if not run.simulated])
    studies: dict[str, list[Named]] = {}
    for device, run in named:
        studies.setdefault(run.name, []).append((device, run))
    known = (load_paper(name) for name in paper_names() if name in studies)
    rows = []
    for paper in sorted(known, key=lambda paper: paper.source.year or 0):
        same = [run for run in runs if run.name == paper.id]
        own = [modelled(run) for run in same if of_own_gpu(paper, run)]
        cards = [(chip(paper.device(run.hardware(paper)).name), run) for run in own]
        rows += paper_rows(paper, [*cards, *studies.pop(paper.id)])
    rows += [row for own in studies.values() for row in ablation_rows(own)]
    devices = {device for device, _ in named}
    filled = {device for device in devices for row in rows if row.cell(device)}
    if not filled:
        raise AnalysisError(
            f"no effect can be computed from {', '.join(str(run.path) for run in runs)}: give timed"
            " runs of the papers (`nqbench reproduce zhang2011` makes one) or of an ablation"
            " (`nqbench run ablation`)"
        )
    return Matrix(tuple(rows), tuple(sorted(filled)), tuple(named))


def _named(runs: Sequence[Dataset]) -> list[Named]:
    """The runs by the names of their columns: the GPU's, and the folder's for a second run."""
    found: list[Named] = []
    seen: set[tuple[str, str]] = set()
    for run in runs:
        name = run.chip
        folders = (f"{name} ({part})" for part in (run.path.parent.name, run.path.name, run.path))
        names = (name, *folders, *(f"{name} ({i})" for i in range(2, len(runs) + 1)))
        name = next(n for n in names if (run.name, n) not in seen)
        seen.add((run.name, name))
        found.append((name, run))
    return found


def _provenance(data: Dataset) -> Provenance:
    return "modelled" if data.simulated else "synthetic" if data.synthetic else "measured"


# The papers.


def paper_rows(paper: Paper, runs: Sequence[Named]) -> list[MatrixRow]:
    """The rows of a paper: what it prints, what timed runs of it measured, and what is modelled for
    its own GPUs, at the size of that run."""
    asked = [(effect, n) for effect in paper.effects for n in effect.n]
    claims = [_claim_of(paper, effect, n) for effect, n in asked]
    alone = paper.model_copy(update={"claims": claims})
    judged = [(device, run, judge(alone, [run])) for device, run in runs]
    rows = []
    for i, (effect, n) in enumerate(asked):
        cells = []
        for device, text in paper.printed(effect, n).items():
            value = None if text in DIRECTIONS else Estimate(float(text))
            cells.append(MatrixCell(chip(paper.device(device).name), "printed", value, n, text))
        for device, run, verdicts in judged:
            verdict = next((v for v in verdicts if v.claim is claims[i]), None)
            said = paper.claim(effect.claim).n if effect.claim else [n]
            for size in verdict.sizes if verdict else ():
                # What the paper says of several sizes may depend on them.
                elsewhere = run.modelled and (len(said) == 1 or size.n in said)
                if isinstance(size.value, Estimate) and (size.n == n or elsewhere):
                    cells.append(MatrixCell(device, _provenance(run), size.value, size.n or n))
        rows.append(MatrixRow(short(paper), effect.id, effect.label, n, tuple(cells)))
    return rows


def short(paper: Paper) -> str:
    """A paper by its first author and year."""
    if not paper.source.authors:
        return paper.id
    return f"{paper.source.authors[0].split()[-1]} {paper.source.year or ''}".strip()


def _claim_of(paper: Paper, effect: Effect, n: int) -> Claim:
    """The claim behind an effect, asked at one size and of each GPU that has something printed; its
    own formula as a claim."""
    name = f"{effect.id} N={n}"
    if effect.claim:
        claim = paper.claim(effect.claim)
        cards = [*dict.fromkeys((*claim.hardware, *paper.printed(effect, n)))]
        return claim.model_copy(update={"id": name, "n": [n], "hardware": cards})
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


# Ablations.


def ablation_rows(runs: Sequence[Named]) -> list[MatrixRow]:
    """The main effects of the first sweep of a study that varies a factor: a row per level.

    They are shown at the largest size that all runs have. A run without such a sweep has no cell.
    """
    found: list[tuple[str, Dataset, list[FactorEffect]]] = []
    for device, run in runs:
        for sweep in run.sweeps:
            with suppress(AnalysisError):  # nothing varies, or nothing can be compared
                found.append((device, run, effects(run, sweep, TIME)))
                break
    sizes = [{e.n for e in own} for _, _, own in found if own]
    common = set.intersection(*sizes) if sizes else set()
    rows: dict[tuple[str, str, str, int], MatrixRow] = {}
    for device, data, own in found:
        n = max(common or {e.n for e in own}, default=0)
        for effect in (e for e in own if e.n == n):
            key = effect.factor, str(effect.base), str(effect.level), n
            name = f"{effect.factor}_{effect.level}"
            label = f"{effect.factor}: {effect.base} → {effect.level}"
            row = rows.get(key) or MatrixRow(data.name, name, label, n, ())
            cell = MatrixCell(device, _provenance(data), effect.ratio.inverse(), n)
            rows[key] = replace(row, cells=(*row.cells, cell))
    return list(rows.values())
