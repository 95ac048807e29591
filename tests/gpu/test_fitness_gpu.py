"""The fitness schemes on a real GPU: right to a million queens, and the shares of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nqbench.plan import MultiLaunchPlan
from nqbench.point import Level
from nqbench.workloads.fitness import WORKLOAD, boards

if TYPE_CHECKING:
    from nqbench.devices.cuda.device import CudaDevice

TIMEOUT_S = 60.0
PAPER = "fitness_schemes"
FINE = [f"{PAPER}.gpu_fine1", f"{PAPER}.gpu_fine2"]
COARSE, CDP = f"{PAPER}.gpu_coarse", f"{PAPER}.gpu_cdp"
HISTOGRAM, BATCHED = "fitness.histogram", "fitness.batched"
ATOMICS = ("per_conflict", "per_thread", "per_warp")
MILLION = 1_000_000


def check(device: CudaDevice, system: str, given: Mapping[str, Level]) -> Mapping[str, float]:
    """Two runs and a split one give the known answer; returns the phases (seconds)."""
    factors = WORKLOAD.resolve(given, system, device.facts).factors
    plan = WORKLOAD.plan(factors, system, device.facts)
    assert isinstance(plan, MultiLaunchPlan)
    known = WORKLOAD.expected(factors)
    with device.prepare(plan) as prepared:
        for _ in range(2):
            run = prepared.launch(TIMEOUT_S)
            assert run.kernel_s is not None
            assert run.kernel_s > 0
            assert WORKLOAD.answer(plan, prepared.fetch()) == known, (system, given)
        phases = prepared.phases(TIMEOUT_S)
        assert WORKLOAD.answer(plan, prepared.fetch()) == known, (system, given)
    return phases


@pytest.mark.parametrize("system", [*FINE, COARSE, CDP, HISTOGRAM])
@pytest.mark.parametrize("board", ["random", "valid"])
def test_small_boards(device: CudaDevice, system: str, board: str) -> None:
    for n in (4, 5, 31, 32, 33, 100, 511, 512, 513, 1000, 1999, 2000):
        check(device, system, {"n": n, "board": board})


@pytest.mark.parametrize("system", [*FINE, COARSE, CDP, HISTOGRAM, BATCHED])
@pytest.mark.parametrize("block_size", [1, 33, 64, 512, 1024])
def test_block_sizes(device: CudaDevice, system: str, block_size: int) -> None:
    check(device, system, {"n": 777, "block_size": block_size})


def levels(**choices: Sequence[Level]) -> list[dict[str, Level]]:
    """Every combination of the levels."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


BOARDS, COUNTERS = ("random", "valid"), ("shared", "global")
LARGER = [
    *product(FINE, [*levels(n=[10_000]), *levels(n=[20_000], board=["valid"])]),
    *product([COARSE], levels(n=[10_000, 100_001], atomics=ATOMICS)),
    *product([COARSE, HISTOGRAM], levels(n=[MILLION], board=BOARDS)),
    *product([BATCHED], levels(n=[MILLION], board=BOARDS, batch=[5])),
    *product([HISTOGRAM], levels(n=[100, 5_000, 20_000], counters=COUNTERS)),
    *product([BATCHED], levels(n=[100, 5_000, 20_000], counters=COUNTERS, batch=[300])),
    *product([CDP], levels(n=[2_000, 10_000, 100_000], threshold=[1024, 4096, 131_072])),
    *product([CDP], levels(n=[400], threshold=[1, 7, 10, 16], child_block_size=[100])),
]


@pytest.mark.parametrize(("system", "given"), LARGER, ids=str)
def test_larger_boards(device: CudaDevice, system: str, given: Mapping[str, Level]) -> None:
    check(device, system, given)


@pytest.mark.parametrize(
    ("threshold", "nesting"), [(1, 1), (7, 2), (10, 5), (16, 20), (16, 24), (16, 25), (4, 40)]
)
def test_nested_sub_kernels(device: CudaDevice, threshold: int, nesting: int) -> None:
    """The paper's silent wrong result past 24 levels (section 3.3) is gone where no kernel waits
    for those that it launched. Refused launches would be a ``LaunchError``."""
    check(device, CDP, {"n": 400, "threshold": threshold, "nesting": nesting})


def test_all_queens_on_one_diagonal(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most conflicts there can be, over 32 bits, all counted at one address."""
    monkeypatch.setattr(boards, "random_board", lambda n, _: np.arange(n, dtype=np.int32))
    for n in (20_000, 200_000):
        check(device, COARSE, {"n": n, "atomics": "per_warp"})
        check(device, HISTOGRAM, {"n": n})


def test_a_call_has_the_shares_that_the_paper_times(device: CudaDevice) -> None:
    phases = check(device, COARSE, {"n": 10_000})
    for name in ("allocate", "transfer", "coarse", "reduce", "free"):
        assert phases[name] > 0, name
    assert phases["kernel"] == pytest.approx(phases["coarse"])
    resident = check(device, COARSE, {"n": 10_000, "allocation": "once"})
    assert not resident.get("allocate")
    assert not resident.get("free")


def test_the_pair_list_dominates_fine_grained_1(device: CudaDevice) -> None:
    phases = check(device, FINE[0], {"n": 10_000})
    assert phases["transfer"] > phases["kernel"]


def test_the_histogram_is_a_thousand_times_faster_than_all_pairs(device: CudaDevice) -> None:
    """At a million queens, by device events; the median of three runs of each."""
    times = {
        system: np.median([check(device, system, {"n": MILLION})["kernel"] for _ in range(3)])
        for system in (COARSE, HISTOGRAM)
    }
    assert times[COARSE] / times[HISTOGRAM] >= 1000, times
