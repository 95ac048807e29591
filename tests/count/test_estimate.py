"""`count --estimate`: predicted from a recorded launch, and from which one is said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.count import choice
from nqbench.count import solutions as estimating
from nqbench.count.solutions import estimate, span
from nqbench.devices.registry import DeviceChoice, SimDevice
from nqbench.workloads.counting.known import EIGHTH_NODES, SOLUTIONS, nodes, solutions
from tests.cli.call import call

ENTRY = (
    "- {{capability: '8.0', system: {}, n: 18, depths: {{18: 7}}, kernel_s: 1.0, gpu: A100,"
    " multiprocessors: 108, date: '2026-11-01', study: own, most_n: {}}}\n"
)


def test_a_gpu_is_predicted_from_its_choice_for_that_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = ENTRY.format("frontier.unrolled", 24) + ENTRY.format("frontier.lookahead", 27)
    (tmp_path / "fastest.yaml").write_text(entries)
    monkeypatch.setattr(choice, "CHOICES", tmp_path / "fastest.yaml")
    half = replace(SimDevice("sm_80").facts, kind="cuda", multiprocessors=54, name="half an A100")
    monkeypatch.setattr(estimating, "facts_for", lambda _: half)
    monkeypatch.setattr(estimating, "choose", lambda _: DeviceChoice("cuda:0", ""))
    for n, system in [(5, "unrolled"), (24, "unrolled"), (25, "lookahead"), (28, "lookahead")]:
        seconds = 2 * nodes(n, EIGHTH_NODES) / EIGHTH_NODES[18]
        by_solutions = 2 * solutions(n) / SOLUTIONS[18]
        said = estimate(n)
        shares = [span(seconds), span(seconds / 8), span(seconds / 1000)]
        assert re.findall(r"(?:take(?: at least)?|,) (.*?) on ", said.partition("\n")[0]) == shares
        assert f"frontier.{system} took 1.0 s at N = 18 on one A100 with 108" in said
        assert "(2026-11-01, study own)" in said
        assert said.endswith(f"by the growth of the solutions it is {span(by_solutions)}")


def test_the_command_without_a_gpu_takes_the_recorded_one() -> None:
    said = call("count", 24, "--estimate")
    assert said.code == 0
    assert "on one NVIDIA H200" in said.out
    assert "predicted from a recorded run: middle took" in said.out
    for words, refused in [
        (("4", "--estimate"), "--estimate takes 5 to 28 queens, not 4"),
        (("29", "--estimate"), "not 29: smaller"),
        (("20", "--estimate", "--device", "cpu"), "is about GPUs, not --device cpu"),
    ]:
        asked = call("count", *words)
        assert (asked.code, refused in asked.err) == (2, True), asked.said


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "12.3 ms"),
        (9.77e-6, "9.77 µs"),
        (119, "119 s"),
        (121, "2.02 min"),
        (1e6, "11.6 days"),
        (1e12, "31,688 years"),
        (1000 * 31_557_600.0, "1,000 years"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_trends_go_on_where_the_tables_end() -> None:
    ratios = [nodes(n, EIGHTH_NODES) / solutions(n) for n in range(14, 29, 2)]
    assert ratios == sorted(ratios)
    growth = [solutions(n) / solutions(n - 1) for n in (26, 27, 28)]
    assert growth[2] - growth[1] == pytest.approx(growth[1] - growth[0])
