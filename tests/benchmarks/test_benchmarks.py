"""Every benchmark that needs no GPU runs, small, and its arithmetic is right."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import mutations, nvbench_crosscheck, overhead
from benchmarks.modelled_time import POOL, beside, part_of, sliced
from benchmarks.nvbench_crosscheck import ToolComparison, verdict
from nqbench.devices.registry import SimDevice
from nqbench.errors import DamageWarning
from nqbench.plan import KernelPlan
from nqbench.runs.reading import read_records
from nqbench.simulator.models import TIME, load_model
from nqbench.workloads.counting import Counting
from tests.measure.test_runner import measure, sizes

MINI = load_model("mini")
RUNS = Path(__file__).parents[2] / "results" / "reference" / "h200"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sim_throughput --n 6 --repeat 1 zhang2011.low_divergence", r"low_divergence +14,249 "),
        (
            f"validate_simulator {RUNS / 'validate_simulator'} --most 1.6e7 --device sim:h200",
            r"`warp_instructions` \| 1 ",
        ),
        (  # whose records name a factor that is gone
            f"validate_simulator {RUNS / 'fitness_schemes'} --most 2e6 --device sim:h200",
            r"`global_sectors` \| 2 \| 1.000 ",
        ),
        ("damaged_studies --count 12 --cli 12", "12 mutations of .* 0 faults; 1 also through"),
        ("damaged_runs --count 1 --seed 1", r"\{[012]: \d"),
        ("overhead --points 3 --rounds 1 --least 0", "3 points, 1 rounds and verification"),
    ],
)
def test_it_runs(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *arguments = words.split()
    assert not importlib.import_module(f"benchmarks.{name}").main(arguments)
    assert re.search(said, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("overhead --points 0", "0 is less than 1"),
        ("damaged_studies --count -3", "-3 is less than 1"),
        ("nvbench_crosscheck spin", "no kernel 'spin'; there is spin_50us"),
        ("nvbench_crosscheck --rounds 0", "--rounds 0: at least 1"),
    ],
)
def test_nonsense_is_refused(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """None of anything would pass for a success."""
    name, *arguments = words.split()
    try:
        code = importlib.import_module(f"benchmarks.{name}").main(arguments)
    except SystemExit as end:
        code = end.code
    assert (code, said in capsys.readouterr().err) == (2, True)


def test_a_damaged_measurement_is_named_and_adds_nothing(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(8), "fake:sleep=1,base=2e-3")
    records = tmp_path / "r" / "records.jsonl"
    damaged = re.sub(r'"value_s":[\d.e-]+', '"value_s":"fast"', records.read_text())
    records.write_text(re.sub(r',"crc32":"\w+"', "", damaged))
    with pytest.warns(DamageWarning, match="which should be a valid number"):
        assert "no timed measurement" in overhead.describe(tmp_path / "r")


def test_kernels_and_what_lies_outside_them_add_up_to_the_measurements(tmp_path: Path) -> None:
    measure(tmp_path / "r", sizes(8, 9), "fake:sleep=1,base=2e-3")
    text = overhead.describe(tmp_path / "r")
    records = [r for r in read_records(tmp_path / "r").records if r.round > 0]
    assert "6 timed measurements of 2 points" in text
    found = re.search(r"([\d.]+) ms outside\s+kernels, ([\d.]+) ms inside", text)
    assert found, text
    wall_ms = sum(record.wall_s for record in records) / 2 * 1e3
    assert abs(float(found[1]) + float(found[2]) - wall_ms) <= 0.11  # printed to a tenth
    measure(tmp_path / "counts", sizes(8), "fake:deterministic=1")
    assert "no timed measurement" in overhead.describe(tmp_path / "counts")


def test_tools_agree_within_a_percent_or_a_microsecond() -> None:
    near = ToolComparison("near", (100.4e-6, 100.5e-6, 100.6e-6), (101.4e-6,))
    far = ToolComparison("far", (1.02e-3,), (1e-3,))
    short = ToolComparison("short", (1e-6,), (9e-6,))
    assert near.share == pytest.approx(0.9 / 1.014)
    assert far.share == pytest.approx(2.0)
    agree, sentence = verdict([near, short])
    assert agree, "what is too short is not judged"
    assert "agree on 1 kernels from 101.40 to 101.40 us" in sentence
    assert verdict([near, far])[1].endswith("kernels from 101.40 to 1,000.00 us: far")
    assert not verdict([short])[0]
    assert far.line().endswith("| 20.00 | 10.00 | 0.00 / 0.00 | DISAGREE |")
    codes = {"nqbench": "a", "nvbench": "b"}
    timings = {t: [{"k": {"samples_s": [1.0], "cubin_sha256": c}}] for t, c in codes.items()}
    with pytest.raises(Exception, match="different cubins"):
        nvbench_crosscheck.compare(["k"], timings)


@pytest.mark.parametrize(
    ("assignment", "system", "blocks"),
    [
        ("one_per_thread", "zhang2011.low_divergence", 2 * POOL // 128),
        ("block_pool", "zhang2011.pool_distributed", 2),
        ("global_pool", "zhang2011.pool_monolithic", 2),
    ],
)
def test_slices_have_whole_pools_of_jobs_and_run(assignment: str, system: str, blocks: int) -> None:
    workload = Counting()
    levels: dict[str, int | str] = {"n": 10, "depth": 5, "block_size": 128}
    levels |= {"pool_size": POOL} if assignment == "block_pool" else {}
    levels |= {"blocks": 4} if assignment == "global_pool" else {}
    factors = workload.resolve(levels, system, MINI.facts).factors
    whole = workload.plan(factors, None, MINI.facts)
    assert isinstance(whole, KernelPlan)
    count = int(whole.about["jobs"])
    assert -(-count // POOL) == 4  # of which a half has the second and the last
    half = sliced(whole, assignment, 2)
    assert half.grid == (blocks, 1, 1)
    device = SimDevice("mini", modes=(TIME,))
    device.simulation = replace(device.simulation, model=part_of(MINI, 2))
    with device.prepare(half) as prepared:
        assert (prepared.launch().counters or {})["modelled_ms"] > 0


def test_mutations_change_one_thing_each() -> None:
    text = "def f(a: int = 3) -> bool:\n    return not (a < 2 and min(a, 1) == -0.0)\n"
    count = len(list(mutations.places(ast.parse(text))))
    found = [mutations.mutated(text, number) for number in range(count)]
    assert len({new for new, _ in found}) == count == 10
    wanted = {"2: `a < 2` -> `a <= 2`", "1: `3` -> `4`", "2: `0.0` -> `1.0`"}
    assert wanted <= {said for _, said in found}
    assert not list(mutations.places(ast.parse("x: int\nraise E('no ' + f'{1}')")))


def test_kernels_beside_their_measured_times() -> None:
    one = [(8, 1.0, 1.0), (8, 2.0, 4.0), (8, 3.0, 2.0), (8, 2.1, 4.1), (9, 0.5, 5.0)]
    # Of the six pairs of one size 4 and 4.1 are alike, and 2 stands before neither of them in the
    # model. The ranks differ by 4, 1, 0, 0 and 3: 1 - 6 * 26 / (5 * 24).
    assert beside("x", [one]) == "| x | 5 | -0.30 | 50% | 3 of 5 |"
    assert beside("y", [one[:2], one[2:3]]) == "| y | 3 | 0.50 | 50% | 1 of 1 |"
