"""When two tools agree about a kernel, and what the page says."""

from __future__ import annotations

import pytest

from benchmarks.crosscheck.comparison import Comparison, markdown, verdict

US = 1e-6


def pair(ours_us: float, theirs_us: float, name: str = "k") -> Comparison:
    return Comparison(name, (ours_us * US,), (theirs_us * US,))


@pytest.mark.parametrize(
    ("ours_us", "theirs_us", "agrees"),
    [
        (50.9, 50.0, True),  # 1.8% off, and yet within 1 us
        (51.1, 50.0, False),
        (49.1, 50.0, True),
        (48.9, 50.0, False),
        (100_900.0, 100_000.0, True),  # 900 us off, and yet within 1%
        (101_100.0, 100_000.0, False),
        (98_900.0, 100_000.0, False),
    ],
)
def test_one_percent_or_one_microsecond(ours_us: float, theirs_us: float, agrees: bool) -> None:
    assert pair(ours_us, theirs_us).agrees is agrees


def test_medians_over_processes_ignore_one_bad_process() -> None:
    one = Comparison("k", (99 * US, 101 * US, 900 * US), (100 * US, 101 * US, 5 * US))
    assert one.ours_s == pytest.approx(101 * US)
    assert one.theirs_s == pytest.approx(100 * US)


@pytest.mark.parametrize(
    ("theirs_us", "inside"),
    [(30.0, False), (50.0, True), (1_000_010.0, True), (2_000_000.0, False)],
)
def test_range(theirs_us: float, inside: bool) -> None:
    assert pair(theirs_us, theirs_us).in_range is inside


@pytest.mark.parametrize(
    ("pairs", "agrees", "parts"),
    [
        (
            [pair(100, 100, "a"), pair(200, 100, "b"), pair(9, 1, "short")],
            False,
            ("disagree on 1 of 2 kernels from 100.00 to 100.00 us: b\n",),
        ),
        (
            [pair(100.5, 100, "a"), pair(1010, 1000.9, "b"), pair(9, 1, "s")],
            True,
            ("2 kernels from 100.00 to 1,000.90 us", "91% (b)"),  # the largest difference
        ),
        ([pair(1, 1)], False, ("nothing was compared",)),
    ],
)
def test_verdict(pairs: list[Comparison], agrees: bool, parts: tuple[str, ...]) -> None:
    agree, sentence = verdict(pairs)
    assert agree is agrees
    for part in parts:
        assert part in f"{sentence}\n"


def test_page_shows_every_kernel() -> None:
    pairs = [pair(100.5, 100, "near"), pair(200, 100, "far"), pair(1, 1, "short")]
    result = {"verdict": "v", "rounds": 3, "environment": {"GPU": "H100"}, "command": "python x"}
    rows = {
        line.split("`")[1]: line for line in markdown(result, pairs).splitlines() if "`" in line
    }
    assert rows["near"].endswith("| agree |")
    assert "+0.50" in rows["near"]
    assert rows["far"].endswith("| DISAGREE |")
    assert rows["short"].endswith("| out of range |")
