"""A run as tables and as JSON: its points, its effects, its best points, its answer.

Every ratio is plain and named for its direction: ``to_over_from`` is the value at the level ``to``
over that at ``from``; ``times_better_than_worst`` is above 1 where the best point is better.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nqbench.analysis import wording
from nqbench.analysis.answer import Answer, Best, FactorStep
from nqbench.analysis.data.dataset import Dataset, PointResult
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.quantities import TIME, Quantity
from nqbench.analysis.factorial.effects import FactorEffect, effects
from nqbench.analysis.findings import findings, gains, interaction, superlative
from nqbench.errors import AnalysisError
from nqbench.runs.frame import column_of, json_rows, point_labels, table_of
from nqbench.system.suggest import shown, suggestion

if TYPE_CHECKING:
    import pandas as pd

GAINS: Final = {"default": "over_default", "worst": "over_worst", "next": "over_next"}
"""What the best point is compared with, and the ratio's name in ``Best``."""
VERDICTS: Final = {"+": "better", "-": "worse", "": ""}
"""Marks of effects, in words."""


def points_table(data: Dataset, value: str | None = None) -> pd.DataFrame:
    """One row per point; see ``nqbench.Run.table``."""
    quantities, named = _shown(data, value), point_labels(data.manifest)
    found = []
    for point in data.points:
        label = named[point.key, point.sweep]
        row = {"sweep": point.sweep, "system": point.system, "label": label, "n": point.n}
        values: dict[str, Any] = {}
        for what in quantities:
            if what.kind == "counter":
                values[what.name] = _plain(point.value(what), what)
            else:
                name = f"{what.name}_s"
                values |= _interval(point.estimate(what), name, f"{name}_")
        samples = sum(int(taken.get("samples") or 0) for taken in point.measurements.values())
        values |= {"rounds": len(point.measurements), "samples": samples}
        values |= {"status": point.status, "reason": point.reason}
        found.append(_with_levels(point, row, values))
    return table_of(found)


def effects_table(
    data: Dataset, sweep: str | None = None, value: str | None = None
) -> pd.DataFrame:
    """One row per sweep, quantity, size, factor and pair of levels; see ``nqbench.Run.effects``."""
    found: list[dict[str, Any]] = []
    refused: list[AnalysisError] = []
    for name in _sweeps(data, sweep):
        for what in data.quantities(value):
            try:
                of_factors = effects(data, name, what)
            except AnalysisError as error:  # another sweep may vary something
                refused.append(error)
                continue
            found += [{"sweep": name, "quantity": what.name, **_effect(e)} for e in of_factors]
    if not found and refused:
        raise refused[0]
    return table_of(found)


def best_table(answer: Answer, sweep: str | None = None, value: str | None = None) -> pd.DataFrame:
    """One row per sweep and quantity; see ``nqbench.Run.best``."""
    data = answer.data
    quantities = (data.quantity(value),) if value else answer.quantities
    found = [one for s in _sweeps(data, sweep) for one in answer.best_of(s, quantities)]
    return table_of([_best_row(answer, one) for one in found])


def run_json(answer: Answer, folder: str) -> dict[str, Any]:
    """A run as ``nqbench report --json`` has it: its points, effects, answer and findings."""
    data = answer.data
    points = json_rows(points_table(data))
    statuses = [point["status"] for point in points]
    try:
        of_factors = json_rows(effects_table(data))
    except AnalysisError:  # the study varies nothing
        of_factors = []
    return {
        "study": data.name,
        "device": data.spec,
        "device_name": data.device,
        "provenance": data.provenance,
        "folder": folder,
        "counts": {status: statuses.count(status) for status in dict.fromkeys(statuses)},
        "answer": {
            "sweep": answer.sweep,
            "best": [_finite(_best_row(answer, one)) for one in answer.best],
            "elsewhere": [_finite(_best_row(answer, one)) for one in answer.elsewhere],
            "changes": [_change(change) for change in answer.changes],
            "interaction": interaction(answer),
            "not_at_every_n": answer.turns,
            "why": answer.limits,
        },
        "findings": findings(answer),
        "points": points,
        "effects": of_factors,
    }


def run_html(answer: Answer) -> str:
    """What a notebook shows of a run: its findings, the best points, what each change does."""
    data = answer.data
    head = f"{data.name} on {data.device_short}: {data.provenance}"
    parts = [f"<p><b>{html.escape(head)}</b>, {data.outcome}</p>"]
    for sentences in (findings(answer), best_table(answer, answer.sweep).get("text", ())):
        told = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
        parts.append(f"<ul>{told}</ul>" if told else "")
    changes = [
        {"factor": change.factor, "change": f"{change.base} -> {change.level}"}
        | {e.quantity.plain: str(e.difference) for e in change.effects.values()}
        for change in answer.changes
    ]
    if changes:
        parts.append(table_of(changes).fillna("").to_html(index=False, border=0, justify="left"))
    return "\n".join(parts)


def _sweeps(data: Dataset, sweep: str | None) -> Sequence[str]:
    """The sweep asked for, else all. Raises ``AnalysisError`` for one that the run has not."""
    if sweep and sweep not in data.sweeps:
        hint = suggestion(sweep, data.sweeps)
        raise AnalysisError(f"the run has no sweep {shown(sweep)}; {hint}")
    return [sweep] if sweep else data.sweeps


def _shown(data: Dataset, value: str | None) -> list[Quantity]:
    """The quantity asked for; else the usual ones, the study's metrics, the time of programs."""
    if value:
        return [data.quantity(value)]
    usual = data.quantities()
    also = [TIME] if TIME not in usual and any(p.timed for p in data.points) else []
    metrics = [m for m in data.metrics.values() if any(p.values(m) for p in data.points)]
    return [*usual, *metrics, *also]


def _with_levels(point: PointResult, row: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A row with the levels of its point before its values; columns of both keep their names."""
    taken = {*row, *values}
    return row | {column_of(name, taken): level for name, level in point.levels.items()} | values


def _plain(value: float, what: Quantity) -> float | int:
    """A count as a whole number."""
    return int(value) if what.counts and value.is_integer() else value


def _interval(found: Estimate | None, name: str, of: str = "") -> dict[str, float]:
    """A value as ``name`` and the bounds of its interval; NaN where there is none."""
    bounds = (found.value, found.low, found.high) if found else (None, None, None)
    names = (name, f"{of}low", f"{of}high")
    return {n: math.nan if b is None else b for n, b in zip(names, bounds, strict=True)}


def _best_row(answer: Answer, best: Best) -> dict[str, Any]:
    what = best.what
    row: dict[str, Any] = {
        "sweep": best.sweep,
        "n": best.n,
        "quantity": what.name,
        "better": what.better,
        "label": point_labels(answer.data.manifest)[best.point.key, best.sweep],
        "system": best.point.system,
    }
    values: dict[str, Any] = _interval(best.value, "value")
    values |= {"value": _plain(best.value.value, what), "points": best.of}
    for other, name in GAINS.items():
        ratio: Estimate | None = getattr(best, name)
        values[f"times_better_than_{other}"] = ratio.value if ratio else math.nan
    said = [f"{superlative(best)}: {best.name}, {wording.amount(best.value.value, what)}"]
    values["text"] = ", ".join([*said, *gains(best)])
    return _with_levels(best.point, row, values)


def _effect(effect: FactorEffect) -> dict[str, Any]:
    found = {"n": effect.n, "factor": effect.factor, "from": effect.base, "to": effect.level}
    ratio = _interval(effect.ratio, "to_over_from")
    return {**found, **ratio, "pairs": effect.pairs, "method": effect.method}


def _change(change: FactorStep) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, effect in change.effects.items():
        totals = zip(("from", "to"), effect.totals or (), strict=False)
        text = wording.effect(effect.ratio, effect.quantity, effect.totals)
        verdict = VERDICTS[wording.mark(effect.ratio, effect.quantity)]
        ratio = _finite(_interval(effect.ratio, "to_over_from"))
        found[name] = {**ratio, **dict(totals), "text": text, "verdict": verdict}
    head = {"sweep": change.sweep, "n": change.n, "factor": change.factor}
    return {**head, "from": change.base, "to": change.level, "effects": found}


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON has it: what is not a number is null."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
