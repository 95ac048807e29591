"""Any valid study expands."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nqbench.errors import NqbenchError
from nqbench.study import expand, load_study
from tests.study.fake import CUDA, SIM, FakeWorkload

LEVELS: dict[str, st.SearchStrategy[Any]] = {
    "memory": st.sampled_from(["shared", "global"]),
    "layout": st.sampled_from(["per_thread", "interleaved"]),
    "depth": st.one_of(
        st.integers(2, 7), st.sampled_from(["auto", "max(2, n - 11)", "min(7, n // 2)"])
    ),
    "block_size": st.one_of(st.integers(1, 128), st.sampled_from(["2 * device.warp_size"])),
    "blocks": st.one_of(
        st.just("from_jobs"), st.integers(1, 99), st.builds(dict, per_sm=st.integers(1, 8))
    ),
    "pool_size": st.integers(1, 5000),
}
SIZES = st.one_of(
    st.integers(10, 27),
    st.lists(st.integers(10, 27), min_size=1, max_size=4),
    st.tuples(st.integers(10, 18), st.integers(18, 27)).map(lambda ends: {"range": list(ends)}),
)


def by_kind(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, st.fixed_dictionaries({"sim": values, "cuda": values}))


@st.composite
def sweeps(draw: st.DrawFn, name: str) -> dict[str, Any]:
    factors = draw(st.permutations(sorted(LEVELS)))
    cuts = sorted(draw(st.lists(st.integers(0, 6), min_size=3, max_size=3)))
    sweep: dict[str, Any] = {"name": name, "infeasible": draw(st.sampled_from(["skip", "error"]))}
    if fixed := factors[: cuts[0]]:
        sweep["fixed"] = {f: draw(by_kind(LEVELS[f])) for f in fixed}
    if matrix := factors[cuts[0] : cuts[1]]:
        lists = {f: st.lists(LEVELS[f], min_size=1, max_size=3) for f in matrix}
        sweep["matrix"] = {f: draw(by_kind(lists[f])) for f in matrix}
    if side := factors[cuts[1] : cuts[2]]:
        length = draw(st.integers(1, 3))
        sweep["zip"] = {
            f: draw(st.lists(LEVELS[f], min_size=length, max_size=length)) for f in side
        }
    if draw(st.booleans()) or not cuts[2]:
        sweep["system"] = draw(st.sampled_from(["alpha2010.opt1_shared", "beta2011.pool"]))
    if draw(st.booleans()):
        sweep["n"] = draw(by_kind(SIZES))
    if draw(st.booleans()):
        sweep["exclude"] = [{"memory": "global", "layout": "per_thread"}, "n == 27 and n < 5"]
    return sweep


@st.composite
def studies(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    return {
        "name": "random",
        "n": draw(by_kind(SIZES)),
        "sweeps": [draw(sweeps(name)) for name in names],
        "measure": {"rounds": draw(st.integers(1, 9)), "target": "1%"},
    }


@settings(max_examples=75, suppress_health_check=list(HealthCheck))
@given(study=studies(), device=st.sampled_from([SIM, CUDA]))
def test_valid_studies_expand(
    study: dict[str, Any], device: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    loaded = load_study(path)
    try:
        points = expand(loaded, device, workload=FakeWorkload())
    except NqbenchError as error:
        message = str(error)
    else:
        message = ""
    if message:  # the only things a generated study may get wrong
        allowed = ("bytes of shared", "no point", "leaves fewer")
        assert any(reason in message for reason in allowed), message
        return
    assert points
    names = [sweep["name"] for sweep in study["sweeps"]]
    order = [(names.index(p.sweep), p.n) for p in points]
    assert order == sorted(order)
    for point in points:
        assert all(not isinstance(v, str) or "n" not in v.split() for v in point.factors.values())
