"""This machine: its devices, what it lacks, whether to trust its times, and work for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import typer

from nqbench.cli import EXIT_FAILED, options, show
from nqbench.cli.measuring import choose, measure
from nqbench.cli.options import argument, option
from nqbench.errors import StudyError

MODES: Final = (
    "Models with the same rules count alike. sim:MODEL:cache counts in the model's own caches,"
    " sim:MODEL:cache:time adds a modelled time: nqbench run quick -d sim:h100:cache:time"
)


def devices(
    model: str = argument("MODEL", "Of the simulator (gtx480, my_gpu.yaml).", ""),
    as_json: options.Json = False,
) -> None:
    """List the devices of this machine and the simulator's models.

    With a model's name: its facts and their sources. Modes can follow a model:
    sim:h100:cache:time counts in its caches and models a time.
    """
    from dataclasses import asdict

    from nqbench.devices.registry import list_devices
    from nqbench.simulator.models import load_model

    if model:
        stated = load_model(model.removeprefix("sim:")).stated
        rows = [{"fact": fact, **stated[fact].as_json()} for fact in stated]
    else:
        rows = [asdict(row) for row in list_devices()]
    if as_json:
        show.console.print_json(rows)
        return
    show.console.show_rows(rows)
    if not model:
        show.console.say(MODES)


def doctor(
    device: str = option(
        "--device -d DEVICE", "The device you want: auto, cuda:0, sim or cpu.", "auto"
    ),
    as_json: options.Json = False,
) -> None:
    """Say what this machine lacks, and the commands that fix it.

    It changes nothing. Exit code 1 if something is missing that the device needs.
    """
    from nqbench.doctor.report import examine

    report = examine(device)
    if as_json:
        show.console.print_json(report.as_json())
    else:
        show.listings.show_doctor(report)
    if not report.usable:
        raise typer.Exit(EXIT_FAILED)


def selftest(
    run: Path | None = argument("RUN", "Judge a recorded self-test again; measures nothing.", None),
    device: str | None = option(
        "--device -d DEVICE", "Measure identical kernels on this device.", None
    ),
    out: options.RunFolder = None,
    budget: options.Budget = None,
) -> None:
    """Compare identical kernels with themselves on a device. Exit code 1: a limit is broken."""
    from nqbench.selftest.device import HEADS, STUDY, UNTIMED, judged
    from nqbench.study import load_study

    if run is not None:
        given = {"--device": device, "--out": out, "--budget": budget}
        options.refuse(given, f"{run} is judged as it was recorded")
    elif device is None:
        raise StudyError("selftest needs a device to measure on: nqbench selftest --device cuda:0")
    elif (spec := choose(device)).startswith("sim"):  # before 48 points are run for nothing
        raise StudyError(f"{spec} {UNTIMED}")
    else:
        run = measure(load_study(STUDY), spec, out=out, fresh=True, budget=budget).path
        show.console.note(f"records: {run}")
    rates = list(judged(run))
    show.console.show_table(HEADS, [rate.cells() for rate in rates])
    if not all(rate.holds for rate in rates):
        raise typer.Exit(EXIT_FAILED)


def worker(
    scheduler: str = argument("ADDRESS", "Of the scheduler: tcp://HOST:PORT, tls://..."),
    gpus: str = option("--gpus all|0,1|none", "Which GPUs; none: CPU only.", "all"),
    insecure: options.Insecure = False,
) -> None:
    """Offer this computer's devices to a Dask scheduler.

    It ends with Ctrl-C or with the scheduler.
    """
    from nqbench.cluster.connect import serve

    serve(scheduler, gpus, insecure, typer.echo)


def count(
    n: int = argument("N", "Board size, 1 to 27."),
    device: options.DeviceName = "auto",
    log: Path | None = option(
        "--log FILE", "Append finished chunks of a long count; run again, it goes on.", None
    ),
    predict: bool = option(
        "--estimate", "Count nothing: say what N would cost on 1, 8 and 1,000 GPUs.", False
    ),
    gpus: options.Gpus = None,
    scheduler: options.Scheduler = None,
    cluster: options.ClusterPath = None,
    insecure: options.Insecure = False,
) -> None:
    """Count the solutions for N queens, as fast as this machine can.

    On a GPU by the fastest verified kernel, else on all cores of the CPU.
    """
    from nqbench.count.solutions import check_size, choose, count_solutions, estimate

    target = options.cluster_target(gpus, scheduler, cluster, insecure)
    if predict:
        if log or target:
            raise StudyError("--estimate counts nothing; leave --log and the cluster out")
        typer.echo(estimate(n, device))
        return
    check_size(n)  # before anything about devices
    with show.progress.progress() as row:

        def tell(share: float, rate: float, left_s: float) -> None:
            left = show.console.duration(max(1, round(left_s)))
            row.status(f"a({n}): {share:.1%}, {rate:,.0f} solutions/s, {left} left")

        if target:
            from nqbench.count.cluster import count_on

            result = count_on(target, n, device, log, show.console.note, tell)
        else:
            chosen = choose(device)
            if device == "auto":
                show.console.note(chosen.why)
            result = count_solutions(n, chosen.spec, log, tell)
    typer.echo(f"a({result.n}) = {result.value}")
    typer.echo(result.how)
