"""What the form of a paper's file does not say: names that must mean something."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Final

from nqbench.errors import StudyError
from nqbench.papers.formula import (
    DEVICE,
    DEVICE_NUMBERS,
    OF_SYSTEM,
    OF_SYSTEMS,
    Formula,
    parse,
)
from nqbench.papers.schema import DATA_TWINS, Claim, Paper, PaperTable
from nqbench.point import PART
from nqbench.study.yaml_marks import KeyPath, Source
from nqbench.system.suggest import suggestion
from nqbench.vocabulary import COUNTERS, PROFILER_COUNTERS
from nqbench.workloads import phases

OWN_QUANTITIES: Final = ("time", "ratio", "jobs", "iterations", "cycles", "divergence", "counter")
RESOURCES: Final = ("registers", "static_shared_bytes", "dynamic_shared_bytes")
"""What a compiler and a launch tell of a kernel, beside the counters."""
_OTHER_ARGUMENTS: Final = ("hw", "N", "config", "stat", "system", "kernel", "least", PART)


def check(paper: Paper, source: Source) -> None:
    """Names of systems, devices, series, phases and factors; formulas. Raises ``StudyError``."""
    _unique(paper, source)
    _workload(paper, source)
    names = _Names(paper)
    for i, system in enumerate(paper.systems):
        if system.system:
            names.system(system.system, source, ("systems", i, "system"))
    for i, part in enumerate(paper.data):
        names.devices(part.hardware, source, ("data", i, "hardware"))
        if part.system:
            names.system(part.system, source, ("data", i, "system"))
    for i, table in enumerate(paper.tables):
        _table(paper, table, names, source, ("tables", i))
    for i, figure in enumerate(paper.figures):
        names.devices(figure.hardware, source, ("figures", i, "hardware"))
        if figure.draw == "pool" and not (
            any(k.value for k in figure.known) and any(k.pool_size for k in figure.known)
        ):
            raise source.error(
                f"{figure.id} cannot be drawn: `known` needs a value and a pool_size",
                ("figures", i),
            )
        names.data(figure.data, source, ("figures", i, "data"))
        for j, known in enumerate(figure.known):
            if known.system:
                names.system(known.system, source, ("figures", i, "known", j))
    for i, claim in enumerate(paper.claims):
        _claim(paper, claim, names, source, ("claims", i))


class _Names:
    """The names that a paper's file may use."""

    def __init__(self, paper: Paper) -> None:
        from nqbench.workloads import get

        workload = get(paper.workload)
        self.paper = paper
        self.systems = set(workload.systems)
        self.factors = set(workload.factors)
        self.hardware = {h.id for h in paper.hardware}
        self.series = {part.id for part in paper.data}
        self.own = {s.system for s in paper.systems}

    def system(self, name: str, source: Source, path: KeyPath) -> None:
        """A system of nqbench, or the short name of one of this paper's."""
        full = self.paper.system(name)
        if full in self.systems:
            if full.startswith(f"{self.paper.id}.") and full not in self.own:
                raise source.error(f"the paper has no system '{full}'; add it to 'systems'", path)
            return
        short = {s.id for s in self.paper.systems if s.system}
        hint = suggestion(name, sorted(self.systems if "." in name else short))
        raise source.error(f"there is no system '{name}'; {hint}", path)

    def devices(self, ids: Iterable[str], source: Source, path: KeyPath) -> None:
        """Devices of the paper."""
        for name in ids:
            if name not in self.hardware:
                hint = suggestion(name, sorted(self.hardware))
                raise source.error(f"the paper has no hardware '{name}'; {hint}", path)

    def data(self, name: str, source: Source, path: KeyPath) -> None:
        """A data file of the paper, or none."""
        if name and name not in self.series:
            hint = suggestion(name, sorted(self.series))
            raise source.error(f"the paper has no data '{name}'; {hint}", path)


def _workload(paper: Paper, source: Source) -> None:
    from nqbench.workloads import names

    if paper.workload not in names():
        hint = suggestion(paper.workload, names())
        raise source.error(f"there is no workload '{paper.workload}'; {hint}", ("workload",))


def _unique(paper: Paper, source: Source) -> None:
    for part in ("hardware", "systems", "tables", "figures", "claims", "caveats", "data"):
        seen: set[str] = set()
        for i, item in enumerate(getattr(paper, part)):
            if item.id in seen:
                raise source.error(f"two entries of {part} are called '{item.id}'", (part, i, "id"))
            seen.add(item.id)


def _table(paper: Paper, table: PaperTable, names: _Names, source: Source, path: KeyPath) -> None:
    names.devices(table.hardware, source, (*path, "hardware"))
    names.data(table.data, source, (*path, "data"))
    if bool(table.data) != (table.twin in DATA_TWINS):
        wanted = "needs the key 'data'" if table.twin in DATA_TWINS else "takes no 'data'"
        raise source.error(f"twin '{table.twin}' of {table.id} {wanted}", (*path, "twin"))
    for i, row in enumerate(table.rows):
        if len(row) != len(table.columns):
            raise source.error(
                f"a row of {table.id} has {len(row)} cells, but there are"
                f" {len(table.columns)} columns",
                (*path, "rows", i),
            )
    _counterparts(table, source, path)
    bases = {t.id: {s.label for s in t.series} for t in paper.tables}
    labels = {t.id: {*t.columns, *(str(r[0]) for r in t.rows)} for t in paper.tables}
    for i, series in enumerate(table.series):
        at = (*path, "series", i)
        names.system(series.system, source, at)
        names.devices([series.hardware] if series.hardware else [], source, at)
        if series.quantity not in (*OWN_QUANTITIES, *phases()):
            hint = suggestion(series.quantity, (*OWN_QUANTITIES, *phases()))
            raise source.error(f"there is no quantity '{series.quantity}'; {hint}", at)
        _factors(series.levels, names, source, at)
        ratio = series.ratio
        labelled = [(table.id, series.label)]
        if ratio is not None:
            if ratio.series not in bases.get(ratio.table, ()):
                hint = suggestion(ratio.series, sorted(bases.get(ratio.table, ())))
                raise source.error(f"{ratio.table} has no series '{ratio.series}'; {hint}", at)
            if ratio.printed:
                labelled.append((ratio.printed_in or table.id, ratio.printed))
        for where, label in labelled:
            if where not in labels:
                raise source.error(f"there is no table '{where}'; {suggestion(where, labels)}", at)
            if label not in labels[where]:
                hint = suggestion(label, sorted(labels[where]))
                raise source.error(f"{where} has no row or column '{label}'; {hint}", at)


def _counterparts(table: PaperTable, source: Source, path: KeyPath) -> None:
    """Rows and counters that the counters of today are set beside."""
    rows = [str(row[0]) for row in table.rows]
    known = (*COUNTERS, *PROFILER_COUNTERS, *RESOURCES)
    for i, part in enumerate(table.counterparts):
        at = (*path, "counterparts", i)
        if part.label not in rows:
            hint = suggestion(part.label, rows)
            raise source.error(f"{table.id} has no row '{part.label}'; {hint}", at)
        if part.counter not in known:
            hint = suggestion(part.counter, known)
            raise source.error(f"there is no counter '{part.counter}'; {hint}", at)


def _factors(levels: Iterable[str], names: _Names, source: Source, path: KeyPath) -> None:
    for factor in levels:
        if factor not in names.factors:
            hint = suggestion(factor, sorted(names.factors))
            raise source.error(f"there is no factor '{factor}'; {hint}", path)


def _claim(paper: Paper, claim: Claim, names: _Names, source: Source, path: KeyPath) -> None:
    names.devices(claim.hardware, source, (*path, "hardware"))
    if claim.caveat and not paper.caveat(claim.caveat):
        hint = suggestion(claim.caveat, [c.id for c in paper.caveats])
        raise source.error(f"there is no caveat '{claim.caveat}'; {hint}", (*path, "caveat"))
    texts: dict[KeyPath, str] = {("expr",): claim.expr, ("expect",): claim.expect}
    if claim.today:
        texts |= {("today", "expr"): claim.today.expr, ("today", "expect"): claim.today.expect}
    for where, text in texts.items():
        if not text:
            continue
        try:
            formula = parse(text)
        except StudyError as error:
            message = f"claim {claim.id}: {error.message}"
            raise source.error(message, (*path, *where)) from error
        _calls(formula, names, source, (*path, *where))


def _calls(formula: Formula, names: _Names, source: Source, path: KeyPath) -> None:
    """Systems, phases and factors that a formula names in so many words."""
    for call in formula.calls():
        function = call.func.id if isinstance(call.func, ast.Name) else ""
        words = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
        systems = words[:1] if function in OF_SYSTEM else words if function in OF_SYSTEMS else []
        given = {k.arg: k.value for k in call.keywords if k.arg}
        if function == "count" and isinstance(given.get("system"), ast.Constant):
            systems = [given["system"].value]  # type: ignore[attr-defined]  # a Constant, see above
        if function == "counter" and words[:1] == [DEVICE]:
            if len(words) < 2 or words[1] not in DEVICE_NUMBERS:
                hint = suggestion(str(words[-1]), DEVICE_NUMBERS)
                raise source.error(f"a device has no number {words[-1]!r}; {hint}", path)
            continue
        for name in systems:
            if isinstance(name, str):
                names.system(name, source, path)
        if function == "phase" and len(words) > 1 and words[1] not in phases():
            raise source.error(
                f"there is no phase {words[1]!r}; {suggestion(words[1], phases())}", path
            )
        _factors([k for k in given if k not in _OTHER_ARGUMENTS], names, source, path)
