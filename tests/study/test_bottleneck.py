"""The study of a bottleneck analysis, from the command line's words to its table and figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.data.quantities import TIME, quantity
from nqbench.analysis.findings import findings
from nqbench.analysis.limits.bottleneck import bottlenecks
from nqbench.compiler.compiled import occupancy
from nqbench.devices.registry import facts_for
from nqbench.errors import InfeasibleError, StudyError
from nqbench.measure.variants import matched
from nqbench.plan import KernelPlan
from nqbench.report.bottleneck import bottleneck_figure as draw
from nqbench.report.bottleneck import bottleneck_table as tabulate
from nqbench.report.figures.style import styled
from nqbench.simulator.models import load_model
from nqbench.study import ReportItem, expand, load_study
from nqbench.study.asked import variants_study
from nqbench.workloads.base import VARIANTS
from nqbench.workloads.ceilings import WORKLOAD as CEILINGS
from tests.toys import TOY, run_here

pytestmark = pytest.mark.usefixtures("undrawn")

ITEM = ReportItem("table", "bottleneck")
H100 = load_model("sm_90").facts


def test_words_of_the_command_line() -> None:
    words = ["ceilings.fma", "steps=7", "ceilings.int_add", "block_size=64"]
    study = variants_study(words, [64, 128])
    points = expand(study, H100)
    assert [p.system for p in points[::3]] == ["ceilings.fma", "ceilings.int_add"] * 2
    assert {(p.factors["steps"], p.factors["block_size"]) for p in points} == {(7, 64)}
    assert [p.factors["part"] for p in points[:3]] == list(VARIANTS)
    assert len({str(p.configuration) for p in points[:3]}) == 1
    assert study.name == "bottleneck-ceilings.fma-ceilings.int_add"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a system"),
        (["steps=3"], "needs a system"),
        (["ceilings.fam"], "did you mean 'ceilings.fma'"),
        (["ceilings.fma", "block=3"], "did you mean 'block_size'"),
        (["ceilings.fma", "block_size=5000"], "from 32 to 1024"),
        (["ceilings.fma", "block_size=2/SM"], "takes a whole number"),
        (["ceilings.fma", "operation=sqrt"], "copy"),
        (["ceilings.fma", "n=3"], "--n"),
        (["ceilings.fma", "brodtkorb_part1.gpu_v8"], "measure them apart"),
    ],
)
def test_mistakes_in_words(words: list[str], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        variants_study(words)

    for n in (0, -4):
        with pytest.raises(StudyError, match=f"'n' is {n}, but takes a whole number from"):
            expand(variants_study(["ceilings.fma"], [64, n]), H100)


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("zhang2011.low_divergence", "control flow depends on the words"),
        ("cpu.somers", "cpu.somers runs on the CPU"),
        ("fitness.sa_delta", "fitness.sa_delta runs on the CPU"),
        ("brodtkorb_part1.cpu_two_loops", "brodtkorb_part1.cpu_two_loops runs on the CPU"),
    ],
)
def test_systems_without_variants(system: str, said: str) -> None:
    with pytest.raises(InfeasibleError, match=said):
        variants_study([system])


def test_sizes_are_the_workloads_own_and_a_cpu_runs_no_kernel() -> None:
    study = variants_study(["brodtkorb_part1.gpu_v8"])
    assert {p.n for p in expand(study, facts_for("sim:mini"))} == {128}
    with pytest.raises(StudyError, match=r"nothing would run: .* of kind 'cpu'"):
        expand(study, facts_for("cpu"))


def test_the_simulator_counts_the_parts(tmp_path: Path) -> None:
    outcome = run_here(variants_study(["ceilings.fma"], [1024]), "sim:mini", tmp_path / "run")
    assert outcome.counts == {"ok": 1, "unchecked": 2}, "parts of a kernel have no right answer"
    data = load_dataset(outcome.path)
    requests = {p.level("part"): p.value(quantity("global_requests")) for p in data.points}
    assert requests["math_only"] == 0
    assert requests["memory_only"] == requests["full"] != 0
    (found,) = bottlenecks(data)
    assert "needs a GPU" in found.judged.reason
    assert any("needs a GPU" in sentence for sentence in findings(Answer(data)))


def test_a_whole_run_on_the_test_device(tmp_path: Path) -> None:
    """Synthetic times go through rounds, records, table and figure like measured ones."""
    study = load_study(
        {
            "name": "toy",
            "workload": TOY.name,
            "n": 4096,
            "sweeps": [{"name": "parts", "systems": ["ceilings.fma", "ceilings.copy"]}],
            "measure": {"variants": ["parts"], "rounds": 3, "samples": 5, "budget": "1s"},
        }
    )
    spec, folder = "fake:seed=3,spread=0.5,noise=0.002,growth=1", tmp_path / "run"
    outcome = run_here(study, spec, folder)
    assert outcome.counts == {"ok": 2, "unchecked": 4}, outcome.failures
    data = load_dataset(outcome.path)
    found = bottlenecks(data)
    assert [b.system for b in found] == ["ceilings.fma", "ceilings.copy"]
    for one in found:
        assert one.math is not None
        math, full = (one.points[part].value(TIME) for part in ("math_only", "full"))
        # A ratio of geometric means is the geometric mean of the ratios.
        assert one.math.value == pytest.approx(math / full)
        assert one.matched
    (table,) = tabulate(data, ITEM)
    assert [row[0] for row in table.rows] == ["ceilings.fma", "ceilings.copy"]
    with styled():
        (drawing,) = [figure() for figure in draw(data, ITEM)]
    assert "ceilings.fma, N = 4096: " in drawing.alt
    again = run_here(study, spec, folder)
    assert again.counts == outcome.counts


def test_unused_shared_memory_brings_occupancy_down() -> None:
    """The copy leaves room for more warps than a kernel whose blocks take much shared memory."""
    factors = CEILINGS.resolve({"n": 1 << 20}, "ceilings.copy", H100).factors
    small = CEILINGS.plan(factors, "ceilings.copy", H100)
    assert isinstance(small, KernelPlan)
    large = replace(small, shared_bytes=60_000)
    made = matched(small, large, H100)
    assert made.about["occupancy_matched"] == 1
    assert made.about["occupancy_full"] == made.about["occupancy_part"]
    assert made.shared_bytes > 0
    fits = occupancy(H100, 32, made.shared_bytes, 256)
    assert fits.blocks_per_multiprocessor == 3
    other = matched(large, small, H100)
    assert other.about["occupancy_matched"] == 0, "shared memory cannot raise an occupancy"
    assert other.shared_bytes == large.shared_bytes
