"""The kernels of system ``middle`` in the simulator, against known counts and the definition."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nqbench.device import Device
from nqbench.devices.registry import open_device
from nqbench.plan import Outputs
from nqbench.point import Level
from nqbench.workloads.counting import WORKLOAD, search
from nqbench.workloads.counting.middle import groups, plans
from tests.workloads.counting import oracle
from tests.workloads.running import CUDA, run

SYSTEM = "middle"


@pytest.fixture(scope="module")
def device() -> Device:
    return open_device("sim:mini")


def _counted(device: Device, n: int, levels: Mapping[str, Level], times: int = 1) -> Outputs:
    """The outputs, of which the answer is right after each of so many launches."""
    return run(WORKLOAD, device, {"n": n, **levels}, SYSTEM, times).outputs


def _case(n: int, **levels: Level) -> tuple[int, dict[str, Level]]:
    return n, levels


LISTED: dict[str, Level] = {"order": "none", "masks": "none"}
CASES = [_case(9), _case(10, order="plain", masks="and"), _case(10, **LISTED)]
MORE = [
    *(_case(n) for n in (5, 6, 7, 8, 9, 10, 11, 12, 13)),
    *(_case(n, listing="walk", pair_test="words", masks="none") for n in (8, 9)),
    *(_case(9, symmetry=symmetry) for symmetry in ("mirror", "quarter")),
    *(_case(10, order=order) for order in ("none", "plain")),
    *(_case(10, masks=masks, pair_test="words") for masks in ("none", "and", "and_or")),
    *(_case(n, **LISTED) for n in (6, 8, 11, 12)),
    _case(8, symmetry="mirror", pair_test="words", **LISTED),
]


@pytest.mark.parametrize(("n", "levels"), CASES)
def test_counts_are_right(device: Device, n: int, levels: dict[str, Level]) -> None:
    _counted(device, n, levels)


@pytest.mark.full
@pytest.mark.parametrize(("n", "levels"), MORE)
def test_counts_of_all_levels_are_right(device: Device, n: int, levels: dict[str, Level]) -> None:
    _counted(device, n, levels)


CUT = [_case(9, split=2), _case(6, split=4)]
MORE_CUT = [_case(n, split=split) for n, split in ((10, 1), (10, 3), (10, 4), (12, 2), (11, 1))]


@pytest.mark.parametrize(
    ("n", "levels"), [*CUT, *(pytest.param(*case, marks=pytest.mark.full) for case in MORE_CUT)]
)
def test_groups_are_cut(device: Device, n: int, levels: dict[str, Level]) -> None:
    _counted(device, n, levels)


def _solutions(device: Device, n: int, some: groups.Groups, **levels: Level) -> list[int]:
    """Of each group alone."""
    found = []
    for i in range(len(some)):
        plan = plans.make_plan({"n": n, **levels}, device.facts, some[i : i + 1])
        with device.prepare(plan) as prepared:
            prepared.launch()
            found.append(int(prepared.fetch()["answer"][0]))
    return found


@pytest.mark.parametrize(
    ("n", "staged", "bucket_bits", "levels"),
    [
        (16, 64, 2, {"order": "gray", "masks": "and_or"}),
        (18, 32, 0, {}),
        (10, 32, 1, {"split": 1}),
        (12, 32, 3, {"order": "none", "pair_test": "words"}),
        pytest.param(17, 512, 3, {"order": "gray"}, marks=pytest.mark.full),
        pytest.param(18, 1024, 0, {}, marks=pytest.mark.full),
    ],
)
def test_long_lists_are_dealt_out_and_written_in_parts(
    device: Device,
    n: int,
    staged: int,
    bucket_bits: int,
    levels: dict[str, Level],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many bins of a bucket as fit, or parts of a bin that does not fit alone."""
    shape = plans.OrderShape(64, 2, bucket_bits, staged)
    monkeypatch.setattr(plans, "order_shape", lambda _: shape)
    every = groups.groups(n)
    some = every[[len(every) // 3]]
    expected = [search.solutions_of_groups(n, some, 0, 1)]
    assert _solutions(device, n, some, **levels) == expected != [0]


@pytest.mark.parametrize("levels", [{}, LISTED])
def test_groups_without_room_are_counted_again(
    device: Device, levels: dict[str, Level], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "longest", lambda _: 32)
    monkeypatch.setitem(plans._ARENA, "sim", 1 << 11)  # several batches
    outputs = _counted(device, 10, levels, times=2)
    assert 0 < outputs["spilled"].size < len(groups.groups(10))


@pytest.mark.parametrize(
    ("n", "shape", "longest", "split"), [(12, (64, 2, 6, 32), 0, 0), (10, (64, 1, 0, 32), 8, 4)]
)
def test_buckets_without_room_are_filled_again(
    device: Device,
    n: int,
    shape: tuple[int, int, int, int],
    longest: int,
    split: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or lists, by the one block that a device has."""
    monkeypatch.setattr(plans, "order_shape", lambda _: plans.OrderShape(*shape))
    if longest:
        monkeypatch.setattr(plans, "longest", lambda _: longest)
    assert _counted(device, n, {"split": split})["spilled"].size > 0


def test_a_group_of_a_large_board_has_its_solutions(device: Device) -> None:
    """Its quarters have more rows than those of boards that are counted whole here."""
    some = groups.groups(20)[100:101]
    assert _solutions(device, 20, some) == [search.solutions_of_groups(20, some, 0, 1)] != [0]


def test_groups_of_an_odd_board_share_lists() -> None:
    """A set of columns stands beside those that any queen of the middle row leaves."""
    for n, share in ((12, 1.0), (13, 3.0), (17, 4.5)):
        plan = plans.make_plan(WORKLOAD.resolve({"n": n}, SYSTEM, CUDA).factors, CUDA)
        sizes = {buffer.name: buffer.length for buffer in plan.buffers}
        assert share * sizes["sets"] <= sizes["list_of"] < 1.2 * share * sizes["sets"]


@pytest.mark.parametrize(("n", "symmetry"), [(8, "quarter"), (9, "middle")])
def test_every_group_has_the_solutions_of_the_definition(
    device: Device, n: int, symmetry: str
) -> None:
    expected = oracle.from_the_middle(n, symmetry == "middle")
    every = groups.groups(n)[::7]
    wanted = [weight * expected[upper, middle] for upper, _, middle, weight in every.tolist()]
    assert _solutions(device, n, every, symmetry=symmetry) == wanted
