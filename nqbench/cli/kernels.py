"""Kernels without a run: what ``check`` finds and ``explain`` counts in the simulator; systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nqbench.cli import EXIT_FAILED, EXIT_INTERRUPTED, options, show
from nqbench.cli.options import argument, option
from nqbench.errors import StudyError

if TYPE_CHECKING:
    from nqbench.study.model import Study

SIMULATOR: Final = "sim:mini"
Conditions = Annotated[
    list[str] | None,
    option("--point FACTOR=LEVEL", "Only such points; LEVEL,LEVEL for several; repeatable."),
]
Sizes = Annotated[
    list[int] | None,
    option("--n", "Size; repeatable. Default: the smallest of each configuration."),
]
Simulator = Annotated[str, option("--device -d SIMULATOR", "sim:MODEL or sim:MODEL:ORDER.")]


def check(
    subject: str = argument("SYSTEM|CONFIG|FILE.cu", "A system, a study, or a file with a kernel."),
    point: Conditions = None,
    n: Sizes = None,
    device: Simulator = SIMULATOR,
    entry: str = option("--entry NAME", "Of a file: the kernel.", ""),
    grid: str = option("--grid X,Y,Z", "Of a file: blocks.", ""),
    block: str = option("--block X,Y,Z", "Of a file: threads per block.", ""),
    shared: str = option("--shared BYTES", "Of a file: dynamic shared memory.", ""),
    cooperative: bool = option("--cooperative", "Of a file: with grid sync.", False),
    arg: list[str] | None = option(
        "--arg 'NAME: TYPE[LENGTH] = CONTENTS'", "Of a file: an argument, in their order.", None
    ),
    include: list[Path] | None = option(
        "--include FOLDER", "Of a file: where its headers are; repeatable.", None
    ),
    as_json: options.Json = False,
    form: str = option("--format github", "Annotations for a check on GitHub.", ""),
) -> None:
    """Find races, memory errors, divergent barriers and endless waiting; needs no GPU."""
    from nqbench.devices.registry import open_simulator
    from nqbench.inspection import check_points
    from nqbench.study.asked import chosen_points, of_kernel
    from nqbench.study.packaged import SOURCES

    if form not in ("", "github") or (form and as_json):
        raise StudyError(f"--format {form}: write --format github alone, or --json")
    simulator, file = open_simulator(device, checked=True), Path(subject)
    study: str | Study = subject
    warn: Callable[[str], None] | None = None  # a kernel alone has no check of its answer
    launch = {"entry": entry, "grid": grid, "block": block, "shared": shared}
    if file.suffix in SOURCES:
        why = f"{subject} is one launch: --grid, --block and --arg have its sizes"
        options.refuse({"--point": point, "--n": n}, why)
        study = of_kernel(file, launch, cooperative, arg or (), include or ())
    else:
        why = f"{subject} is not a .cu file; its study says what to launch"
        given = {**launch, "cooperative": cooperative, "arg": arg, "include": include}
        options.refuse({f"--{name}": value for name, value in given.items()}, why)
        warn = show.console.note
    points = chosen_points(study, simulator.facts, point or (), n or (), warn=warn)
    with show.progress.progress() as listener:
        found = check_points(points, simulator, listener, name=entry)
    if as_json:
        show.console.print_json({"subject": subject, "device": simulator.spec, **found.as_json()})
    elif form:
        show.listings.tell_checked(found)
    else:
        show.listings.show_checked(found)
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if found.mistakes or found.failed or not found.checked:
        raise typer.Exit(EXIT_FAILED)


def explain(
    subjects: list[str] = argument(
        "SYSTEM|CONFIG", "A system or a study (file or name); two to put side by side."
    ),
    point: list[str] | None = option(
        "--point FACTOR=LEVEL",
        "Only such points; repeatable. A factor's second level begins the second point.",
        None,
    ),
    n: Sizes = None,
    device: Simulator = SIMULATOR,
    as_json: options.Json = False,
) -> None:
    """Show counters by source line, side by side; needs no GPU.

    Two points stand side by side; of more, the worst and the best.
    """
    from nqbench.devices.registry import facts_for
    from nqbench.inspection import explain_points, side_by_side
    from nqbench.report.explain import Pair, whole
    from nqbench.report.table import Source
    from nqbench.study import asked

    facts, groups = facts_for(device), asked.sides(point or ())
    if len(subjects) * len(groups) > 2:
        raise StudyError("explain puts two points side by side; name two subjects, or two --point")
    sides = [
        asked.chosen_points(subject, facts, words, n or (), warn=show.console.note)
        for subject in subjects
        for words in groups
    ]
    with show.progress.progress() as listener:
        points, why = side_by_side(sides, device, listener)
    kernels_of = explain_points(points, device)
    found = [one for of_point in kernels_of for one in of_point]
    source = Source(facts.name, "simulated", options.shown_line(), " and ".join(subjects))
    pair = Pair(whole(kernels_of[0]), whole(kernels_of[1]), why) if len(points) == 2 else None
    if as_json:
        show.console.print_json([one.as_json() for one in found])
    else:
        show.listings.show_explained(found, pair, source)


def kernels(
    system: str | None = argument("SYSTEM", "One system; default: all.", None),
    as_json: options.Json = False,
) -> None:
    """List the papers' kernels, or show what one is made of."""
    from nqbench.workloads import find_system, with_systems

    if as_json:
        listed = [
            {"workload": w.name, "system": name, "cpu": name in w.cpu_systems, "levels": {**levels}}
            for w in ([find_system(system)] if system else with_systems())
            for name, levels in w.systems.items()
            if system in (None, name)
        ]
        show.console.print_json(listed)
    elif system is None:
        show.listings.show_systems(with_systems())
    else:
        show.listings.show_system(find_system(system), system)
