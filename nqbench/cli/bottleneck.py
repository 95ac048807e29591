"""The command ``bottleneck``."""

from __future__ import annotations

from typing import Annotated

import typer

from nqbench.cli import completion
from nqbench.cli.exit_codes import exit_code
from nqbench.cli.measuring import choose, conclude, measure
from nqbench.cli.options import Device, Fresh, RunFolder


def bottleneck(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM|FACTOR=LEVEL",
            help="Systems, and levels for all of them.",
            autocompletion=completion.systems,
        ),
    ],
    n: Annotated[
        list[int] | None, typer.Option("--n", help="Size; repeatable. Default: the workload's own.")
    ] = None,
    device: Device = "auto",
    out: RunFolder = None,
    fresh: Fresh = False,
) -> None:
    """Time kernels without their arithmetic and without their memory; say what limits them."""
    from nqbench.analysis.data.collect import load_dataset
    from nqbench.cli.show.tables import show_report_table
    from nqbench.devices.registry import facts_for
    from nqbench.report.tables.bottleneck import bottleneck as tables
    from nqbench.study import ReportItem
    from nqbench.study.variants import variants_study

    asked, spec = variants_study(words, n or ()), choose(device)
    points = asked.points(facts_for(spec))
    outcome = measure(asked.study, spec, points, out=out, fresh=fresh)
    if outcome.counts.get("ok", 0):
        for table in tables(load_dataset(outcome.path), ReportItem("table", "bottleneck")):
            show_report_table(table)
    conclude([outcome])
    if code := exit_code(outcome):
        raise typer.Exit(code)
