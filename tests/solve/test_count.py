"""The fastest verified path: it fits the board that was asked for, whatever the board."""

from __future__ import annotations

import pytest

from nqbench.devices.sim import SimDevice
from nqbench.errors import DeviceUnavailable, StudyError
from nqbench.point import Level
from nqbench.solve import count
from nqbench.workloads import get


@pytest.mark.parametrize("n", [5, 16, 18, 20, 27])
def test_every_candidate_fits_the_board(n: int) -> None:
    workload, device = get("counting"), SimDevice("sm_90")
    for name, extra in count.CANDIDATES:
        fitted = count._fitted(workload, device, n, name, extra)
        assert fitted is not None
        assert fitted.items() >= extra.items()
        derived = workload.resolve({"n": n, **fitted}, name, device.facts).derived
        assert 0 < int(derived["jobs"]) <= count.MAX_JOBS


def test_the_papers_depth_is_kept_where_it_fits() -> None:
    workload, device = get("counting"), SimDevice("sm_90")
    assert count._fitted(workload, device, 16, "zhang2011.low_divergence", {}) == {}
    # N - 11 = 9 rows on a board of 20 would be more jobs than are ever stored.
    assert count._fitted(workload, device, 20, "zhang2011.low_divergence", {}) == {"depth": 7}


def test_a_system_without_kernels_does_not_fit() -> None:
    workload, device = get("counting"), SimDevice("mini")
    too_large: dict[str, Level] = {"block_size": 1024, "rows": "max"}
    assert count._fitted(workload, device, 12, "feinbube2010.opt2_shared_all", too_large) is None


@pytest.mark.parametrize("n", [0, 28, -1])
def test_sizes_without_a_known_answer_are_refused(n: int) -> None:
    with pytest.raises(StudyError, match=f"not {n}: a"):
        count.count_solutions(n, "sim")


def test_without_a_gpu_the_cpu_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> list[object]:
        raise DeviceUnavailable("no driver")

    monkeypatch.setattr("nqbench.devices.cuda.query.find_gpus", absent)
    choice = count.choose("auto")
    assert choice.spec == "cpu"
    assert "no driver" in choice.why
    assert count.choose("sim").spec.startswith("sim:")
    for n, known in ((1, 1), (4, 2), (12, 14200)):
        found = count.count_solutions(n, "auto")
        assert found.value == known
        assert "cpu.frontier_multicore on cpu" in found.how
