"""What holds of every workload: its systems resolve, its names are checked, its words are known."""

from __future__ import annotations

import re

import pytest

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.point import MEASURING
from nqbench.vocabulary import COUNTERS, PHASES
from nqbench.workloads import get, launch_factors, names, phases, probe_counters
from nqbench.workloads.base import NOT_APPLICABLE, Workload
from tests.workloads.running import CPU, CUDA

WORKLOADS = [get(name) for name in names()]
SYSTEMS = [(workload, system) for workload in WORKLOADS for system in workload.systems]
WITH_SYSTEMS = [workload for workload in WORKLOADS if workload.systems]
SIZE = 64


def test_the_folders_are_the_workloads() -> None:
    assert set(names()) == {"ceilings", "counting", "fitness", "local_search", "programs"}
    assert [workload.name for workload in WORKLOADS] == list(names())
    assert {w.name for w in WORKLOADS if w.no_variants} == {"counting", "programs"}
    with pytest.raises(StudyError, match="did you mean 'counting'"):
        get("countin")


def size_of(workload: Workload) -> int:
    return 12 if workload.name == "counting" else SIZE


@pytest.mark.parametrize(("workload", "system"), SYSTEMS, ids=lambda x: getattr(x, "name", x))
def test_a_system_resolves_to_itself(workload: Workload, system: str) -> None:
    for facts in (CUDA, CPU) if system in workload.cpu_systems else (CUDA,):
        for n in (5, 8, 12, 18) if workload.name == "counting" else (SIZE,):
            once = workload.resolve({"n": n}, system, facts)
            assert workload.resolve(once.factors, system, facts) == once
            assert set(once.factors) == set(workload.factors)
            assert workload.name != "counting" or "auto" not in once.factors.values()


@pytest.mark.parametrize(("workload", "system"), SYSTEMS, ids=lambda x: getattr(x, "name", x))
def test_only_kernels_need_a_gpu(workload: Workload, system: str) -> None:
    if system in workload.cpu_systems:
        assert workload.resolve({"n": size_of(workload)}, system, CPU).factors["n"]
    else:
        with pytest.raises(WrongDeviceError, match=r"GPU"):
            workload.resolve({"n": size_of(workload)}, system, CPU)


@pytest.mark.parametrize("workload", WITH_SYSTEMS, ids=lambda w: w.name)
def test_names_and_levels_that_do_not_exist(workload: Workload) -> None:
    system = next(s for s in workload.systems if s not in workload.cpu_systems)
    n = size_of(workload)
    with pytest.raises(StudyError, match=f"no system .*did you mean '{re.escape(system)[:-1]}"):
        workload.resolve({"n": n}, f"{system}x", CUDA)
    with pytest.raises(StudyError, match="no factor 'blck_size'; did you mean 'block_size'"):
        workload.resolve({"n": n, "blck_size": 4}, system, CUDA)
    name = next(f.name for f in workload.factors.values() if f.levels)
    with pytest.raises(StudyError, match="not 'locale'"):
        workload.resolve({"n": n, name: "locale"}, system, CUDA)
    with pytest.raises(InfeasibleError, match=r"'block_size' is 100000, but takes .* \d+ to 1024"):
        workload.resolve({"n": n, "block_size": 100_000}, system, CUDA)
    with pytest.raises(StudyError, match="needs a number n"):
        workload.resolve({}, system, CUDA)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_its_words_have_one_meaning(workload: Workload) -> None:
    assert workload.cpu_systems <= set(workload.systems)
    assert workload.parallel_systems <= workload.cpu_systems
    assert not set(workload.phases) & set(PHASES)
    assert set(workload.phases) <= set(phases())
    assert not set(workload.probe_counters) & {*COUNTERS, *phases()}
    assert set(workload.probe_counters) <= set(probe_counters())
    assert bool(workload.no_variants) != bool(workload.variant_n)
    for system in workload.systems.values():
        for name, level in system.items():
            factor = workload.factors[name]
            if isinstance(level, str) and level not in (NOT_APPLICABLE, "auto"):
                assert level in factor.levels, (name, level)


@pytest.mark.parametrize(
    ("name", "own"), [("ceilings", ("block_size",)), ("gone:AWAY", ()), ("", ())]
)
def test_launch_factors_of_any_workload_that_can_be_loaded(name: str, own: tuple[str, ...]) -> None:
    assert launch_factors(name) == (*own, *MEASURING)
