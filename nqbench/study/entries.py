"""The entries of a study's ``report`` list, checked against the tables and figures there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nqbench.study import axes
from nqbench.study.report_items import OPTIONS, Form, ReportItem, ReportKind, kinds, values
from nqbench.study.schema import ReportFile
from nqbench.study.yaml_marks import KeyPath, Source
from nqbench.system.suggest import listing, shown, suggestion
from nqbench.vocabulary import is_counter

_OTHER: Final[dict[Form, Form]] = {"table": "figure", "figure": "table"}


def report_item(
    source: Source, file: ReportFile, path: KeyPath, sweeps: Sequence[str]
) -> ReportItem:
    """One entry. Raises ``StudyError`` for an unknown name, a foreign or a missing option.

    Whether ``x``, ``y`` and ``series`` are factors is judged once the workload is known.
    """
    kind = _kind(source, file, path)
    _check_options(source, file, path, kind)
    of = _sweep(source, file, path, kind, sweeps)
    if file.value is not None and file.value not in values() and not is_counter(file.value):
        raise source.error(
            f"'value' cannot be {shown(file.value)}; {suggestion(file.value, values())}",
            (*path, "value"),
        )
    return ReportItem(
        form=kind.form,
        name=kind.name,
        of=of,
        x=file.x,
        y=file.y,
        series=file.series,
        value=file.value,
        title=file.title,
        n=axes.plain_sizes(source, file.n, (*path, "n")) if file.n is not None else (),
    )


def _kind(source: Source, file: ReportFile, path: KeyPath) -> ReportKind:
    if (file.table is None) == (file.figure is None):
        raise source.error("a report entry is either {table: NAME} or {figure: NAME}", path)
    form: Form = "table" if file.table is not None else "figure"
    name = file.table or file.figure or ""
    if name in kinds(form):
        return kinds(form)[name]
    other = _OTHER[form]
    hint = (
        f"there is a {other} '{name}': write {{{other}: {name}}}"
        if name in kinds(other)
        else suggestion(name, kinds(form))
    )
    raise source.error(f"there is no {form} '{name}'; {hint}", (*path, form))


def _check_options(source: Source, file: ReportFile, path: KeyPath, kind: ReportKind) -> None:
    given = file.model_fields_set & OPTIONS.keys()
    for option in OPTIONS:
        if option in given and option not in kind.options:
            raise source.error(
                f"the {kind.form} '{kind.name}' takes no '{option}';"
                f" it takes {listing(kind.options, 'and')}",
                (*path, option),
            )
        if option in kind.required and option not in given:
            raise source.error(
                f"the {kind.form} '{kind.name}' needs '{option}': {OPTIONS[option]}", path
            )


def _sweep(
    source: Source, file: ReportFile, path: KeyPath, kind: ReportKind, sweeps: Sequence[str]
) -> str | None:
    """The sweep that the entry draws; ``None`` for all."""
    if file.of is not None and file.of not in sweeps:
        raise source.error(
            f"'of' names no sweep of this study: {shown(file.of)}; {suggestion(file.of, sweeps)}",
            (*path, "of"),
        )
    if file.of is not None or not kind.one_sweep:
        return file.of
    if len(sweeps) > 1:
        raise source.error(
            f"the {kind.form} '{kind.name}' needs 'of': one of the sweeps {listing(sweeps)}", path
        )
    return sweeps[0]
