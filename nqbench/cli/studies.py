"""Studies: start one, measure it, look at its kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nqbench.cli import EXIT_FAILED, EXIT_INTERRUPTED, exit_code, options, show
from nqbench.cli.measuring import choose, conclude, measure
from nqbench.cli.options import argument, option
from nqbench.errors import StudyError

if TYPE_CHECKING:
    from nqbench.study import Study


def init(
    name: str = argument("NAME", "Name of the study; NAME.yaml.", ""),
    workload: str = option(
        "--workload WORKLOAD", "kernel (your own, NAME.cu) or counting.", "kernel"
    ),
    schema: bool = option(
        "--schema", "Also write nqbench.schema.json, from which editors complete.", False
    ),
) -> None:
    """Start a study of a kernel of yours: NAME.yaml and NAME.cu."""
    from nqbench.study.packaged import write_schema, write_template

    if not name and not schema:
        raise StudyError("init needs a name for the study: nqbench init my-study")
    written: list[Path] = []
    if name:
        name = name.removesuffix(".yaml").removesuffix(".cu")
        written += write_template(name, Path(f"{name}.yaml"), workload)
    if schema:
        written.append(write_schema(Path()))
    typer.echo(f"written: {', '.join(map(str, written))}")
    if name:
        typer.echo(f"edit it, then `nqbench run {name}.yaml --dry-run` shows its points")


def run(
    config: options.Config,
    device: options.DeviceName = "auto",
    out: options.RunFolder = None,
    fresh: options.Fresh = False,
    dry_run: bool = option("--dry-run", "Print the points and the most time; run nothing.", False),
    budget: options.Budget = None,
    axis: list[str] | None = option(
        "--axis -a FACTOR=A,B", "Levels in place of the study's; repeatable.", None
    ),
    no_report: bool = option("--no-report", "Measure only; draw nothing.", False),
    no_check: bool = option(
        "--no-check", "Do not look for races in a simulated kernel of your own.", False
    ),
    gpus: options.Gpus = None,
    scheduler: options.Scheduler = None,
    cluster: options.ClusterPath = None,
    insecure: options.Insecure = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run every variant of a study: check the answers, time or count.

    A GPU gives kernel times. Without one, the simulator counts exactly what a profiler would;
    with -d sim:h100:cache:time it also models the caches and a time.
    """
    from nqbench.study.asked import with_axes

    show.console.hush(quiet)
    study = with_axes(config, axis or ())
    target = options.cluster_target(gpus, scheduler, cluster, insecure)
    if dry_run and target:
        raise StudyError("--dry-run plans for one device of this computer; name no cluster")
    spec = "" if target else choose(study.device(device), study.name)
    if dry_run:
        _dry_run(study, spec, out, fresh, budget, as_json=as_json)
        return
    if target:
        from nqbench.cluster.devices import run_on_cluster

        with show.progress.progress() as row:
            line = options.command_line()
            outcomes = run_on_cluster(
                target, study, device, row, out=out, fresh=fresh, budget_s=budget, command=line
            )
    else:
        outcomes = [measure(study, spec, out=out, fresh=fresh, budget=budget)]
    races = show.results.look_for_races(study, config, outcomes, "" if no_check else spec)
    conclude(outcomes, draw=not no_report, as_json=as_json, races=races, config=config)
    if any(outcome.interrupted for outcome in outcomes):
        raise typer.Exit(EXIT_INTERRUPTED)
    if races and races.mistakes and quiet:
        typer.echo(races.line(), err=True)
    if code := max(*map(exit_code, outcomes), EXIT_FAILED if races and races.mistakes else 0):
        raise typer.Exit(code)


def _dry_run(
    study: Study, spec: str, out: Path | None, fresh: bool, budget: float | None, *, as_json: bool
) -> None:
    """Show the points, how long measuring takes at most, and what becomes of a named folder."""
    from nqbench.devices.registry import facts_for
    from nqbench.measure.runner import foreseen
    from nqbench.runs.reading import local_folder
    from nqbench.study import expand

    facts = facts_for(spec)
    points = expand(study, facts, warn=show.console.note)
    share_s = study.measure.budget_s
    most_s = None if facts.kind == "sim" else share_s * sum(not point.skip for point in points)
    most_s = most_s and min(most_s, budget or most_s)
    if out or fresh:
        show.console.note(foreseen(study, out or local_folder(study.name, spec), fresh, facts.name))
    if as_json:
        planned = [point.as_json() for point in points]
        show.console.print_json({"points": planned, "estimate_s": most_s})
    else:
        show.listings.show_points(points, most_s)


def static(
    config: options.Config,
    arch: str = option("--arch", "Architectures, separated by commas.", "sm_75,sm_80,sm_90,sm_120"),
    as_json: options.Json = False,
) -> None:
    """Show registers, spills, shared memory, occupancy; needs no GPU."""
    from dataclasses import asdict

    from nqbench.compiler.static import shortened
    from nqbench.measure.launch import static_rows
    from nqbench.study import expand, load_study

    archs = [name.strip() for name in arch.split(",") if name.strip()]
    study = load_study(config)
    with show.progress.progress() as listener:
        rows = static_rows(lambda facts: expand(study, facts), archs, listener)
    if as_json:
        show.console.print_json([asdict(row) for row in rows])
    elif rows:
        chips = ", ".join(dict.fromkeys(f"{r.arch} is {r.chip}" for r in rows))
        show.console.show_rows([*map(asdict, shortened(rows))], varying=f"{chips}. ")
    else:
        show.console.note("no point of this study is a GPU kernel: there is nothing to compile")


def bottleneck(
    words: list[str] = argument("SYSTEM|FACTOR=LEVEL", "Systems, and levels for all."),
    n: list[int] | None = option("--n", "Size; repeatable. Default: the workload's own.", None),
    device: options.DeviceName = "auto",
    out: options.RunFolder = None,
    fresh: options.Fresh = False,
) -> None:
    """Say whether memory or arithmetic limits a kernel.

    It is timed as it is, without its arithmetic, and without its memory accesses.
    """
    from nqbench.study import ReportItem
    from nqbench.study.asked import variants_study

    outcome = measure(variants_study(words, n or ()), choose(device), out=out, fresh=fresh)
    conclude([outcome], items=[ReportItem("table", "bottleneck")])
    if code := exit_code(outcome):
        raise typer.Exit(code)
