"""Points that no workload can make: one sentence for each, and the factor that is to blame."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nqbench.errors import InfeasibleError, StudyError
from nqbench.point import Level
from nqbench.workloads import get
from tests.workloads.running import CPU, CUDA, GPU

HISTOGRAM, BATCHED = "fitness.histogram", "fitness.batched"
COARSE, FINE2, CDP = (f"fitness_schemes.gpu_{scheme}" for scheme in ("coarse", "fine2", "cdp"))
SA_CPU, SA_GPU = "fitness_schemes.sa_cpu", "fitness_schemes.sa_gpu"
DELTA, CHAINS = "fitness.sa_delta", "fitness.sa_chains"
FUSED, V1 = "local_search.fused", "brodtkorb_part1.gpu_v1"
LOOPS = "brodtkorb_part1.cpu_two_loops"

Case = tuple[str | None, Mapping[str, Level], str, str]
"""A system, what is given beside ``n: 10``, the factor to blame, and what is said."""
REFUSED: dict[str, list[Case]] = {
    "ceilings": [
        (None, {"n": 6}, "n", "not a multiple of 4"),
        (None, {"n": 12, "operation": "read"}, "n", "not a power of two"),
        (None, {"n": 16, "operation": "read", "steps": 4097}, "steps", "over 4096"),
        (None, {"n": 16, "operation": "copy", "steps": 2}, "steps", "copy has none"),
    ],
    "fitness": [
        (None, {}, "", "needs a system or a scheme"),
        (None, {"scheme": "gpu_coarsest"}, "", "did you mean 'gpu_coarse'"),
        (HISTOGRAM, {"board_file": 3}, "", "3 is not a level; choose from the name of a file"),
        (HISTOGRAM, {"scheme": "gpu_coarse"}, "scheme", "not the scheme of fitness.histogram"),
        (None, {"scheme": "cpu_serial"}, "scheme", "write system: fitness_schemes.cpu_serial"),
        (COARSE, {"threads": 4}, "threads", "means nothing to fitness_schemes.gpu_coarse"),
        (BATCHED, {"batch": 0}, "batch", "0 is outside 1 to"),
        (COARSE, {"board": "file"}, "board", "needs board_file"),
        (COARSE, {"board": "valid", "seed": 3}, "seed", "with board: valid"),
        (COARSE, {"board_file": "x.npy"}, "board_file", "with board: random"),
        (CDP, {}, "", "dynamic parallelism), which is not simulated"),
        (HISTOGRAM, {"n": 0}, "n", "outside 1 to 10000000"),
        (COARSE, {"board": "valid", "n": 3}, "board", "n from 4"),
        (HISTOGRAM, {"counters": "shared", "n": 30_000}, "counters", "over the 232448 of test GPU"),
        (FINE2, {"n": 70_000, "block_size": 1}, "n", "over the 2147483647 blocks of a grid"),
    ],
    "fitness on a GPU": [
        (
            *(CDP, {"n": 1000, "threshold": 256, "nesting": 25}, "nesting"),
            "no row has more than 4; use a threshold of at most 41",
        ),
        (CDP, {"n": 1000, "threshold": 42, "nesting": 25}, "nesting", "more than 24;"),
    ],
    "fitness on a CPU": [
        (SA_CPU, {"evaluator": "gpu_coarse"}, "evaluator", "gpu_coarse is none of sa_cpu"),
        (SA_CPU, {"threads": 2}, "threads", "means nothing to evaluator: cpu_serial"),
        (SA_CPU, {"evaluator": "cpu_threads", "threshold": 2}, "threshold", "means nothing"),
        (DELTA, {"n": 1}, "n", "no two queens"),
        (DELTA, {"proposal": "attacked", "cooling": 900}, "cooling", "cooling: 900 means"),
        (DELTA, {"start_temperature": 5}, "end_temperature", "above start_temperature: 5"),
    ],
    "searches of fitness": [
        (SA_GPU, {"evaluator": "cpu_serial"}, "evaluator", "system: fitness_schemes.sa_cpu"),
        (SA_GPU, {"evaluator": "gpu_cdp"}, "", "dynamic parallelism"),
        (SA_GPU, {"counters": "shared"}, "counters", "means nothing to evaluator: gpu_coarse"),
        (CHAINS, {"block_size": 48}, "block_size", "not a multiple of 32"),
        (CHAINS, {"n": 30_000, "counters": "shared"}, "counters", "bytes of shared memory"),
        (CHAINS, {"n": 10**6, "chains": 10**5}, "n", "bytes of device memory"),
    ],
    "local_search": [
        (None, {"n": 3}, "n", "n: 3 is outside 4 to 65536"),
        (None, {"n": 65_537}, "n", "n: 65537 is outside 4 to 65536"),
        (None, {"block_size": 2048}, "block_size", "block_size: 2048 is outside"),
        (None, {"apply_size": 100}, "apply_size", "is not a power of two from 32"),
        (None, {"iterations": 0}, "iterations", "iterations: 0 is outside 1"),
        (FUSED, {"block_size": 48}, "block_size", "block_size: 48 is not a multiple of 32"),
        (FUSED, {"tile_x": 3}, "tile_x", "tile_x: 3 is not 1, 2, 4"),
        (
            *(FUSED, {"n": 900, "tile_x": 4, "block_size": 544}, "block_size"),
            "block_size: 544 is over 512, all that registers allow with tile_x: 4",
        ),
        (
            *("local_search.resident", {"n": 9000, "tile_x": 3, "tile_y": 8}, "tile_x"),
            "tile_x: 3 is not 1, 2, 4",
        ),
        (
            *(FUSED, {"mapping": "rectangle"}, "mapping"),
            "mapping: rectangle means nothing to kernel: tiled; leave mapping out",
        ),
        (V1, {"tile_x": 4}, "tile_x", "tile_x: 4 means nothing to kernel"),
        (FUSED, {"check_every": 4}, "check_every", "check_every: 4 means nothing"),
        (LOOPS, {"mapping": "rectangle"}, "mapping", f"rectangle means nothing to {LOOPS}"),
    ],
}
DEVICES = {"fitness on a CPU": CPU, "fitness on a GPU": CUDA}


@pytest.mark.parametrize(
    ("where", "case"), [(where, case) for where, cases in REFUSED.items() for case in cases]
)
def test_what_cannot_run(where: str, case: Case) -> None:
    system, given, factor, said = case
    workload = get("fitness" if "fitness" in where else where)
    with pytest.raises((InfeasibleError, StudyError)) as caught:
        workload.resolve({"n": 10, **given}, system, DEVICES.get(where, GPU))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    if isinstance(caught.value, InfeasibleError):
        assert caught.value.factor == factor
