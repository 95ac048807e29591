"""The command ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nqbench.cli import EXIT_FAILED, completion, options, wrong_request
from nqbench.cli.options import argument, option

if TYPE_CHECKING:
    from nqbench.analysis.compare.request import Findings, Gate


def compare(
    runs: Annotated[
        list[Path],
        argument(
            "RUN", "Run folders or nvbench files; the first is the reference.", completion.runs
        ),
    ],
    by: Annotated[
        str | None,
        option("--by", "Within one run: FACTOR=REFERENCE,LEVEL..., paired by round."),
    ] = None,
    margin: Annotated[str, option("--margin", "Differences up to this count as the same.")] = "1%",
    value: Annotated[
        str | None, option("--value", "A phase or counter instead of the usual quantities.")
    ] = None,
    fail_on: Annotated[
        str | None,
        option(
            "--fail-on",
            "Exit code 1 if a point is slower[:2%], a counter is worse or differs[:1%], or a point"
            " no longer runs.",
        ),
    ] = None,
    out: options.OutFolder = None,
    formats: options.Formats = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare the same points of several runs, or the levels of a factor within one."""
    from nqbench.analysis.compare.request import Gate, compare_datasets, parse_percentage
    from nqbench.cli.show import console, results
    from nqbench.interchange import open_runs
    from nqbench.system.files import printable

    console.hush(quiet)
    gate = Gate.parse(fail_on) if fail_on else None
    results.note_incomplete(runs)
    with wrong_request():
        findings = compare_datasets(
            open_runs(runs),
            [printable(run) for run in runs],
            by=by,
            margin=parse_percentage(margin, "--margin"),
            value=value,
            command=options.shown_line(),
        )
        if gate is not None:
            gate.check(findings)
        _show(findings, out, formats or [], as_json=as_json)
    if gate is not None and _broken(gate, findings, f"--fail-on {fail_on}"):
        raise typer.Exit(EXIT_FAILED)


def _show(findings: Findings, out: Path | None, formats: list[str], *, as_json: bool) -> None:
    """Write files with ``--out``, print tables with ``--format`` alone, else show a summary.

    A page of HTML is a file in any case.
    """
    from nqbench.cli.show import comparison, documents
    from nqbench.report.comparison import rendered, write_comparison
    from nqbench.report.exporters import HTML
    from nqbench.runs.layout import PLOTS

    if HTML in formats:
        out = out or PLOTS / "local" / "compare"
    if formats and out is None and not as_json:
        for form in formats:
            typer.echo(rendered(findings, form), nl=False)
        return
    paths = write_comparison(findings, out, formats or ("md", "csv")) if out else []
    if as_json:
        documents.print_json(documents.comparison_json(findings, paths))
    else:
        comparison.show_comparison(findings, paths)


def _broken(gate: Gate, findings: Findings, option: str) -> bool:
    """Whether a point hit the gate; says how many did, and how many could not be compared."""
    from nqbench.cli.show import console
    from nqbench.system.suggest import many

    hits = sum(gate.hits(comparison) for comparison in findings.comparisons)
    missing = [point for comparison in findings.comparisons for point in comparison.missing]
    broke = sum(point.broke for point in missing)
    unseen = f" ({many(len(missing), 'point')} could not be compared, see above)" if missing else ""
    failed = f", and {broke} that ran before and failed now" if broke else ""
    console.note(f"{option}: {many(hits, 'point') if hits else 'none'}{failed}{unseen}")
    return bool(hits or broke)
