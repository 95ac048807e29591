"""Points that no workload can make: one sentence for each, and the factor that is to blame."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.errors import InfeasibleError, StudyError
from nqbench.point import Level
from nqbench.workloads import get
from tests.workloads.running import CPU, CUDA, GPU

Case = tuple[str, Mapping[str, Level], str, str]
"""A system if there is one, what is given beside ``n: 10``, the factor to blame, what is said."""
REFUSED: dict[str, list[Case]] = tomllib.loads(
    Path(__file__).with_name("refused.toml").read_text(encoding="utf-8")
)
OLD = replace(GPU, name="old GPU", compute_capability=(6, 1), max_threads_per_block=512)
DEVICES = {
    "fitness on a CPU": CPU,
    "fitness on a GPU": CUDA,
    "counting on a CPU": CPU,
    "counting on an old GPU": OLD,
}


@pytest.mark.parametrize(
    ("where", "case"), [(where, case) for where, cases in REFUSED.items() for case in cases]
)
def test_what_cannot_run(where: str, case: Case) -> None:
    system, given, factor, said = case
    workload = get(next((name for name in ("fitness", "counting") if name in where), where))
    with pytest.raises((InfeasibleError, StudyError)) as caught:
        workload.resolve({"n": 10, **given}, system or None, DEVICES.get(where, GPU))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    if isinstance(caught.value, InfeasibleError):
        assert caught.value.factor == factor
