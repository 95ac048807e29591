"""The commands ``compare``, ``selftest`` and ``export``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from nqbench.cli.exit_codes import EXIT_FAILED

OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder for tables, figures and a page.")
]


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run folders or nvbench JSON files; the first is the reference.",
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option("--by", help="Within one run: FACTOR=REFERENCE,LEVEL..., paired by round."),
    ] = None,
    margin: Annotated[
        str, typer.Option("--margin", help="Differences up to this count as the same.")
    ] = "1%",
    value: Annotated[
        str | None, typer.Option("--value", help="A phase or counter instead of the usual ones.")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="slower[:2%] or differs[:1%]: then, or if a point no longer runs, exit code 1.",
        ),
    ] = None,
    out: OutFolder = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", "-f", help="md, csv, tex, html; repeatable.")
    ] = None,
) -> None:
    """Compare the same points of several runs, or the levels of a factor within one."""
    from nqbench.cli import comparing as actions_compare
    from nqbench.cli.show import compare as terminal_compare
    from nqbench.cli.show import console as terminal

    gate = actions_compare.parse_gate(fail_on) if fail_on else None
    terminal.tell_incomplete(runs)
    findings = actions_compare.compare(
        runs, by=by, margin=margin, value=value, command=shlex.join(_command())
    )
    if formats and out is None:
        for form in formats:
            typer.echo(actions_compare.rendered(findings, form), nl=False)
    else:
        paths = actions_compare.write_comparison(findings, out, formats or ()) if out else []
        terminal_compare.show_comparison(findings, paths)
    if gate is not None:
        hits = sum(gate.hits(comparison) for comparison in findings.comparisons)
        missing = [point for comparison in findings.comparisons for point in comparison.missing]
        broke = sum(point.broke for point in missing)
        lacking = sum(comparison.unmatched for comparison in findings.comparisons)
        unseen = f" ({_points(lacking)} could not be compared, see above)" if lacking else ""
        failed = f", and {broke} that ran before and failed now" if broke else ""
        told = _points(hits) if hits else "none"
        terminal.note(f"--fail-on {fail_on}: {told}{failed}{unseen}")
        if hits or broke:
            raise typer.Exit(EXIT_FAILED)


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count} points"


def selftest(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="Judge such a run again; measures nothing."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="Trials per kind of noise (default 4000).")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", help="Measure identical kernels on this device instead."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of that run.")] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Time for that run: 90s, 2m.")
    ] = None,
) -> None:
    """Compare identical code with itself: is the statistics' word good? Exit code 1 if not."""
    from nqbench.cli import comparing as actions_compare
    from nqbench.cli import measuring as actions
    from nqbench.cli.show import compare as terminal_compare
    from nqbench.cli.show import console as terminal

    actions_compare.check_self_test(run, trials, device, out, budget)
    if run is not None:
        result = actions_compare.judged_again(run)
    elif device is None:
        result = actions_compare.self_test(trials, terminal.note)
    else:
        spec = actions.choose(device).spec
        with terminal.progress() as listener:
            result, path = actions_compare.self_test_device(spec, out, budget, listener, _command())
        terminal.note(f"records: {path}")
    terminal_compare.show_self_test(result)
    if not result.passed:
        raise typer.Exit(EXIT_FAILED)


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    form: Annotated[str, typer.Option("--format", "-f", help="nvbench or csv.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File; standard output without it.")
    ] = None,
) -> None:
    """Write a run in the format of another program."""
    from nqbench.cli import comparing as actions_compare

    text = actions_compare.export(run, form, out)
    typer.echo(text if out is None else str(out), nl=out is not None)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (compare, selftest, export):
        app.command()(command)


def _command() -> list[str]:
    return ["nqbench", *sys.argv[1:]]
