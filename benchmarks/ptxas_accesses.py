"""What the mode ``ptxas`` takes the assembler to do with shared memory, against the machine code.

    python -m benchmarks.ptxas_accesses STUDY... [--model h200]

Needs nvdisasm (``pip install nvidia-cuda-nvdisasm``), no GPU. Every kernel of the studies that
accesses shared memory is compared once: its loads and stores by width.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nqbench.compiler.compile import compile_kernel
from nqbench.compiler.sass import sass_counts
from nqbench.devices.simulator import SimDevice
from nqbench.errors import CompileError
from nqbench.plan import Kernel
from nqbench.simulator.ptx import UnsupportedPtx
from nqbench.simulator.translation import build
from nqbench.study import expand, load_study
from nqbench.workloads import get


def kernels(study: Path, device: SimDevice) -> Iterator[tuple[str, Kernel]]:
    """Every kernel of a study's points on the chip of a model."""
    facts = replace(device.facts, kind="cuda")
    for point in expand(load_study(study), facts):
        if not point.skip and point.program is None:
            plan = get(point.workload).plan(point.configuration, point.system, facts)
            for name, kernel in plan.kernels.items():
                yield f"{study.stem} {point.system or ''} {name}", kernel


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare and print what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("studies", nargs="+", type=Path, metavar="STUDY")
    parser.add_argument("--model", default="h200", help="whose architecture (default h200)")
    options = parser.parse_args(arguments)
    device = SimDevice(options.model, modes=("ptxas",))
    seen: set[tuple[bytes, str]] = set()
    equal = 0
    different = []
    for label, kernel in (k for study in options.studies for k in kernels(study, device)):
        try:
            text = compile_kernel(kernel, device.facts.arch, "ptx")
            if (text.image, text.symbol) in seen:
                continue
            seen.add((text.image, text.symbol))
            code = build(text.image.decode(), text.symbol, device.simulation.rules)
            cubin = compile_kernel(kernel, device.facts.arch)
        except (CompileError, UnsupportedPtx) as error:
            sys.stdout.write(f"{label}: {error}\n")
            continue
        counts = sass_counts(cubin.image, cubin.symbol).accesses
        found = dict(code.assembled.shared_accesses(code.blocks))
        wanted = {name: n for name, n in counts.items() if name[2] == "S"}
        if found == wanted:
            equal += bool(found)
        else:
            different.append(label)
            sys.stdout.write(f"{label}: {found}, machine code {wanted}\n")
    sys.stdout.write(f"{equal} of {equal + len(different)} kernels are equal\n")


if __name__ == "__main__":
    main()
