"""Does `nqbench check` notice every missing barrier?

    python -m benchmarks.missing_barriers [--examples | --systems]

Removes each `__syncthreads()` and `__syncwarp()` of the examples and of nqbench's own kernels, one
at a time, and checks the kernels that contain it at a small size. Prints a line for each: the kinds
of mistake found, or `nothing`. Takes about a minute.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import nqbench
from nqbench.devices.simulator import SimDevice
from nqbench.inspection import check_points
from nqbench.plan import Kernel, KernelPlan, MultiLaunchPlan, Plan
from nqbench.simulator.mistakes import run_checked
from nqbench.study.chosen import chosen_points
from nqbench.workloads import find_system

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
WORKLOADS: Final = Path(nqbench.__file__).resolve().parent / "workloads"
BARRIER: Final = re.compile(r"__sync(threads|warp)\(\);")
SYSTEMS: Final = {
    "counting/jobs.cuh": (9, ["zhang2011.pool_distributed"]),
    "counting/nqueens.cu": (9, ["zhang2011.low_divergence"]),
    "fitness/board.cuh": (64, ["fitness.histogram", "fitness.batched"]),
    "fitness/histogram.cu": (64, ["fitness.histogram", "fitness.batched"]),
    "fitness/annealing/chains.cu": (32, ["fitness.sa_chains"]),
    "local_search/indexed.cuh": (40, [f"brodtkorb_part1.gpu_v{k}" for k in (3, 5, 7, 8)]),
    "local_search/tiled.cuh": (150, ["local_search.fused", "local_search.resident"]),
}
"""Files with barriers, and systems that run them, with a size."""


def without_each(folder: Path, file: str) -> Iterator[tuple[int, Path]]:
    """Copies of a folder in which one barrier of a file is missing, with the barrier's line."""
    lines = (folder / file).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if BARRIER.search(line):
            with tempfile.TemporaryDirectory() as place:
                copy = Path(place) / folder.name
                shutil.copytree(folder, copy)
                changed = [*lines[:number], BARRIER.sub(";", line), *lines[number + 1 :]]
                (copy / file).write_text("\n".join(changed) + "\n", encoding="utf-8")
                yield number + 1, copy


def of_examples(device: SimDevice) -> Iterator[tuple[str, set[str]]]:
    """What is found without each barrier of the examples."""
    for source in sorted(EXAMPLES.glob("*/*.cu")):
        for line, copy in without_each(source.parent, source.name):
            points = chosen_points(str(copy / f"{source.stem}.yaml"), device.facts)
            found = check_points(points, device)
            yield f"{source.name}:{line}", {mistake.first.kind for mistake in found.mistakes}


def of_systems(device: SimDevice) -> Iterator[tuple[str, set[str]]]:
    """What is found without each barrier of nqbench's own kernels."""
    for file, (n, systems) in SYSTEMS.items():
        for line, copy in without_each(WORKLOADS, file):
            kinds = set()
            for system in systems:
                workload, _ = find_system(system)
                factors = workload.resolve({"n": n}, system, device.facts).factors
                plan = moved(workload.plan(factors, system, device.facts), copy)
                kinds |= {finding.kind for _, finding in run_checked(plan, device.simulation)}
            yield f"{file}:{line}", kinds


def moved(plan: Plan, folder: Path) -> KernelPlan | MultiLaunchPlan:
    """A plan whose kernels come from a copy of the workloads."""

    def there(source: Path) -> Path:
        return folder / source.resolve().relative_to(WORKLOADS)

    if isinstance(plan, MultiLaunchPlan):
        kernels: dict[str, Kernel] = {
            name: replace(kernel, source=there(kernel.source))
            for name, kernel in plan.kernels.items()
        }
        return replace(plan, kernels=kernels)
    assert isinstance(plan, KernelPlan)
    return replace(plan, source=there(plan.source))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is found without each barrier."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--examples", action="store_true", help="the examples alone")
    only.add_argument("--systems", action="store_true", help="nqbench's own kernels alone")
    given = parser.parse_args(arguments)
    device = SimDevice(checked=True)
    count = noticed = 0
    for run, skip in ((of_examples, given.systems), (of_systems, given.examples)):
        for place, kinds in () if skip else run(device):
            sys.stdout.write(f"{place}: {', '.join(sorted(kinds)) or 'nothing'}\n")
            count, noticed = count + 1, noticed + bool(kinds)
    sys.stdout.write(f"{noticed} of {count} missing barriers noticed\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
