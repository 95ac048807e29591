"""Which levels go together, what is filled in, and the sentence for each refusal."""

from __future__ import annotations

import re

import pytest

from nqbench.errors import InfeasibleError, StudyError, WrongDeviceError
from nqbench.point import Level
from nqbench.workloads.counting import Counting
from tests.workloads.running import CPU, GPU

COUNTING = Counting()


def resolve(system: str | None = None, /, **given: Level) -> dict[str, Level]:
    return dict(COUNTING.resolve({"n": 12} | given, system, GPU).factors)


def test_local_memory_has_no_order_of_its_own() -> None:
    levels = resolve(memory="local")
    assert (levels["allocation"], levels["storage"], levels["layout"]) == ("-", "-", "-")


def test_global_memory_is_not_allocated_like_shared_memory() -> None:
    assert resolve(memory="global")["allocation"] == "-"


def test_a_shared_stack_is_one_array() -> None:
    assert resolve(memory="shared_stack")["storage"] == "arrays"


def test_a_level_given_overrides_the_system() -> None:
    levels = resolve("feinbube2010.opt2_shared_all", memory="local")
    assert (levels["memory"], levels["layout"], levels["loop"]) == ("local", "-", "somers")


def test_a_system_without_a_layout_starts_from_the_papers_form() -> None:
    moved = resolve("feinbube2010.base", memory="shared")
    assert moved == resolve("feinbube2010.opt2_shared_all")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"memory": "local", "layout": "padded"}, "layout: padded makes no sense with memory: loc"),
        ({"memory": "local", "storage": "chunk"}, "storage: chunk makes no sense with memory: loc"),
        ({"memory": "global", "allocation": "dynamic"}, "allocation: dynamic makes no sense"),
        ({"memory": "shared_stack", "storage": "struct"}, "storage: struct makes no sense with"),
        ({"storage": "chunk", "layout": "interleaved"}, "use storage: arrays"),
        ({"pool_size": 64}, "pool_size: 64 makes no sense with assignment: one_per_thread"),
        ({"jobs_per_thread": 4}, "jobs_per_thread: 4 makes no sense with assignment: one_per"),
        ({"max_board": 20}, "max_board: 20 makes no sense with rows: remaining"),
        ({"blocks": 4}, "blocks: 4 makes no sense with assignment: one_per_thread"),
        (
            {"assignment": "block_pool", "blocks": {"per_sm": 2}},
            "blocks: {per_sm: 2} makes no sense with assignment: block_pool",
        ),
        (
            {"assignment": "strided", "blocks": 3, "jobs_per_thread": 2},
            "blocks: 3 and jobs_per_thread: 2 both fix the number of threads",
        ),
    ],
)
def test_senseless_combinations_are_refused(given: dict[str, Level], sentence: str) -> None:
    with pytest.raises(InfeasibleError, match=re.escape(sentence)) as caught:
        resolve(None, **given)
    assert caught.value.factor in {*given, "layout"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"layot": "padded"}, "no factor 'layot'; did you mean 'layout'?"),
        ({"layout": "interleave"}, "no level 'interleave'; did you mean 'interleaved'?"),
        ({"memory": 3}, "memory takes a word, not 3"),
        ({"blocks": {"per_sm": 0}}, "blocks: {'per_sm': 0} is not a level"),
        ({"block_size": {"per_sm": 1}}, "block_size: {'per_sm': 1} is not a level"),
    ],
)
def test_unknown_names_are_refused(given: dict[str, Level], sentence: str) -> None:
    with pytest.raises(StudyError, match=re.escape(sentence)):
        resolve(None, **given)


@pytest.mark.parametrize(
    ("system", "n", "depth"),
    [
        ("zhang2011.low_divergence", 18, 7),
        ("zhang2011.low_divergence", 13, 2),
        ("zhang2011.low_divergence", 12, 4),  # N - 11 = 1 is too few rows: 2,000 jobs decide
        ("tanaka2011.both", 16, 5),
        ("tanaka2011.both", 8, 5),
        ("tanaka2011.both", 7, 4),  # 5 > N - 3
        ("feinbube2010.base", 16, 4),
        ("feinbube2010.base", 19, 3),
        (None, 8, 5),  # no depth gives 2,000 jobs
        (None, 5, 2),
    ],
)
def test_auto_depth(system: str | None, n: int, depth: int) -> None:
    assert resolve(system, n=n, depth="auto")["depth"] == depth
    assert resolve(system, n=n)["depth"] == depth


def test_kernels_need_a_gpu() -> None:
    for system in ("zhang2011.low_divergence", None):
        with pytest.raises(WrongDeviceError, match="is a GPU kernel and device test CPU"):
            COUNTING.resolve({"n": 12}, system, CPU)


@pytest.mark.parametrize("device", [GPU, CPU])
def test_host_programs_run_anywhere_and_take_only_n(device: object) -> None:
    facts = GPU if device is GPU else CPU
    assert COUNTING.resolve({"n": 1}, "cpu.somers", facts).factors["n"] == 1
    with pytest.raises(InfeasibleError, match="takes only n; leave depth out"):
        COUNTING.resolve({"n": 8, "depth": 3}, "cpu.multicore", facts)
