"""Reproduced tables: the printed cells, the fresh ones, and quotients with quotients."""

from __future__ import annotations

from typing import Any

import pytest

from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import in_times_of
from nqbench.analysis.wording import grouped
from nqbench.errors import AnalysisError
from nqbench.papers import load_paper
from nqbench.report.papers.tables import reproduced_table
from nqbench.report.table import Table
from tests.builders import MINI, Builder, counters_of
from tests.papers.runs import POOLS, STEPS, column, levels, zhang

CARDS = {"gtx275": "2.64", "gtx295": "2.06", "gf8600m_gs": "1.23", "nvs295": "0.95"}
"""Quotients of the printed seconds; 14.7 / 12.0 is 1.225, which the paper's claims round up."""


def made(paper: str, table: str, builder: Builder) -> Table:
    loaded = load_paper(paper)
    run = in_times_of(loaded, builder.observed(paper))
    return reproduced_table(loaded, loaded.table(table), run)


def test_times_beside_times_and_ratios_beside_ratios() -> None:
    table = made("zhang2011", "table_3", zhang(noise=1e-6))
    assert column(table, "paper") == ["0.08", "0.27", "2.13", "15.51", "134.23"]
    assert column(table, "speed-up, paper") == ["4.63", "4.67", "4.48", "4.38", "4.29"]
    truth = STEPS["naive_l1_48k"] / STEPS["shared_conflict"]
    for ratio in column(table, "speed-up, here"):
        assert isinstance(ratio, Estimate)
        assert ratio.value == pytest.approx(truth, rel=1e-4)
        assert ratio.bounded
    assert "speed-up, here" not in [c.name for c in made("zhang2011", "table_1", zhang()).columns]


def test_pools_take_their_best_configuration() -> None:
    table = made("zhang2011", "table_7", zhang(noise=1e-6))
    assert all("pool_size 512" in cell for cell in column(table, "configuration here"))
    faster = zhang(noise=1e-6, steps=dict(STEPS) | {"pool_distributed": 3.0})
    chosen = column(made("zhang2011", "table_7", faster), "configuration here")
    assert all(f"pool_size {POOLS[-1]}" not in cell for cell in chosen)
    assert all("block_size 32" in cell for cell in chosen)


def test_missing_sizes_are_said_with_the_command() -> None:
    table = made("zhang2011", "table_4", zhang(sizes=(15, 16)))
    assert [v is None for v in column(table, "here")] == [False, False, True, True, True]
    notes = " ".join(table.notes)
    assert "zhang2011.shared_no_conflict N=17" in notes
    assert "`nqbench reproduce zhang2011` resumes and measures what is missing" in notes
    with pytest.raises(AnalysisError, match="nqbench reproduce zhang2011"):
        made("zhang2011", "table_4", zhang(sizes=(12,)))


def simulated() -> Builder:
    builder = Builder(MINI)
    own = levels(12, memory="shared", layout="per_thread")
    builder.count("kernels", own, counters_of(own), "zhang2011.shared_conflict")
    return builder


def test_a_simulated_run_gives_no_times() -> None:
    with pytest.raises(AnalysisError, match="counts and does not time"):
        made("zhang2011", "table_3", simulated())


def test_job_counts_equal_the_printed_ones_but_for_the_misprint() -> None:
    table = made("tanaka2011", "table_1", zhang(sizes=(15,)))
    cells = zip(*(column(table, c) for c in ("series", "N", "paper", "here")), strict=True)
    wrong = [row for row in cells if row[2] != str(row[3])]
    assert wrong == [("m3", "19", "2720", 2072)]
    assert "N=19, m3: 2720 printed, 2072 counted" in table.notes


def tanaka() -> Builder:
    builder = Builder(noise=1e-6)
    own = {"depth": 5, "block_size": 160, "blocks": {"per_sm": 1}}
    for n in (15, 16):
        for name, value in (("none", 8.0), ("conflict_free", 6.0), ("dynamic", 5.0), ("both", 4.0)):
            builder.time("ablation", {"n": n, **own}, value, f"tanaka2011.{name}")
        builder.time("ablation", {"n": n}, 100.0, "cpu.somers")
        for depth in (3, 4, 6):
            own_depth = {"n": n, **own, "depth": depth}
            builder.time("depth", own_depth, 4.0 * depth, "tanaka2011.both")
    # The frame has texts where the manifest has mappings.
    for row in builder.rows:
        if isinstance(row.get("blocks"), dict):
            row["blocks"] = "1/SM"
        row["threads"] = 21120
    return builder


def test_tanaka_ablation_depth_speedup_shares() -> None:
    builder = tanaka()
    ablation = made("tanaka2011", "table_9", builder)
    found = dict(zip(column(ablation, "series"), column(ablation, "speed-up, here"), strict=True))
    assert found["none"] is None
    made_depth = made("tanaka2011", "table_2", builder)
    assert column(made_depth, "speed-up, here")[0].value == pytest.approx(4 / 12, rel=1e-4)
    assert column(made_depth, "speed-up, paper")[0] == "(0.276)"
    over_cpu = made("tanaka2011", "table_6", builder)
    rows: dict[str, Any] = {str(row[0]): row[1:] for row in over_cpu.rows}
    assert [name.rpartition(", ")[2] for name in rows] == ["paper"] * 3 + ["here"]
    assert rows["NVIDIA GeForce GTX280, paper"][:2] == ("5.12", "9.30")
    (here,) = [row for name, row in rows.items() if name.endswith("here")]
    assert here[0].value == pytest.approx(100 / 4.0004, rel=1e-4)
    assert here[2] is None  # N = 17 was not run
    assert any("tanaka2011.both N=17, 18, 19" in note for note in over_cpu.notes)
    shares = made("tanaka2011", "table_8", builder)
    share = dict(
        zip(column(shares, "series"), column(shares, "share of total, here"), strict=False)
    )
    assert column(shares, "share of total, paper")[0] == "0.2016"
    assert "configuration here" not in [c.name for c in shares.columns]
    assert "configuration here: depth 5, block_size 160, blocks 1/SM" in shares.notes
    assert share["transfer_share"] is None  # the last size, which was not run
    assert column(shares, "share of total, here")[0].value == pytest.approx(2e-4 / 4.0004, rel=1e-3)


def test_more_rows_than_the_papers_are_shown_where_they_were_measured() -> None:
    builder = tanaka()
    for n in (15, 16):
        own = {"n": n, "depth": 7, "block_size": 160, "blocks": "1/SM"}
        builder.time("depth", own, 2.0, "tanaka2011.both")
    table = made("tanaka2011", "table_2", builder)
    labels = column(table, "series")
    assert labels.count("m7") == 2
    assert "m8" not in labels
    row = table.rows[labels.index("m7")]
    assert row[2] == ""
    assert any(note.startswith("beyond the paper, not measured") for note in table.notes)


def test_a_scaled_launch_stands_beside_the_papers() -> None:
    builder = tanaka()
    with pytest.raises(AnalysisError, match="no point of the sweep scaled"):
        made("tanaka2011", "scaled", builder)
    own = {"n": 15, "depth": 6, "block_size": 160, "blocks": "4/SM"}
    builder.time("scaled", own, 1.0, "tanaka2011.both")
    table = made("tanaka2011", "scaled", builder)
    assert column(table, "the paper's launch") == ["depth 5, block_size 160, blocks 1/SM"]
    assert column(table, "scaled launch") == ["depth 6, block_size 160, blocks 4/SM"]
    (gain,) = column(table, "speed-up by scaling")
    assert gain.value == pytest.approx(4.0004 / 1.0004, rel=1e-4)


def test_counters_of_the_kernels_stand_in_a_table() -> None:
    builder = tanaka()
    with pytest.raises(AnalysisError, match="no point of the sweep counted"):
        made("tanaka2011", "profile", builder)
    for name, conflicts in (("none", 8e6), ("both", 0.0)):
        own = {"n": 16, "depth": 5, "block_size": 160, "blocks": "1/SM"}
        builder.time("counted", own, 1.0, f"tanaka2011.{name}")
        counted = {"warp_instructions": 2e9, "lane_efficiency": 0.4, "bank_conflicts": conflicts}
        builder.profile({**counted, "duration_ns": 19e6})
    table = made("tanaka2011", "profile", builder)
    heads = [c.heading for c in table.columns]
    assert heads == ["system", "N", "warp instructions (M)", "active lanes (%)",
                     "bank conflicts (M)", "duration", "launch"]  # fmt: skip
    assert column(table, "system") == ["none", "both"]
    assert column(table, "bank conflicts") == [8.0, 0.0]
    assert column(table, "active lanes") == [40.0, 40.0]
    assert column(table, "duration") == [0.019, 0.019]


def test_pools_by_size_and_block() -> None:
    builder = zhang(noise=1e-6)
    own = {"n": 18, "block_size": 64, "pool_size": 256, "depth": 7}
    builder.time("pool_block", own, 0.5, "zhang2011.pool_distributed")
    table = made("zhang2011", "pools", builder)
    rows = {(n, block): dict(zip(table.columns, row, strict=True))
            for row in table.rows for n, block in [row[:2]]}  # fmt: skip
    wide: dict[str, Any] = {c.name: cell for c, cell in rows[18, 64].items()}
    assert wide["pools of 256"].value == pytest.approx(0.5, rel=1e-4)
    assert wide["pools of 512"] is None
    assert wide["fastest pools"] == 256


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["a N=1: late", "a N=2: late"], ["a N=1, 2: late"]),
        (["a N=1: takes 3 s", "b N=1: takes 4 s"],
         ["a N=1; b N=1: takes 3 s (the numbers are the first one's)"]),
        (["no a N=1 (sizes: 5)", "no a N=2 (sizes: 5)"], ["no a N=1, 2 (sizes: 5)"]),
        (["a: x", "b: y", "a: x"], ["a: x", "b: y"]),
        (["no run"], ["no run"]),
        ([], []),
    ],
)  # fmt: skip
def test_reasons_are_said_once(reasons: list[str], said: list[str]) -> None:
    assert grouped(reasons) == said


def test_launch_and_environment() -> None:
    table = made("tanaka2011", "table_4", tanaka())
    assert table.rows[-1][1:] == (132, 160)
    feinbube = made("feinbube2010", "table_2", zhang(sizes=(15,)))
    assert len(feinbube.rows) == 5
    assert feinbube.rows[-1][0] == "here"
    assert made("feinbube2010", "table_1", zhang(sizes=(15,))).source.provenance == "as printed"


def feinbube() -> Builder:
    builder = Builder(noise=1e-6)
    for system, best in (("base", 2.0), ("opt4_compact", 1.0)):
        for depth in (4, 5):
            for block in (32, 64):
                own = {"n": 16, "depth": depth, "block_size": block}
                value = best * (1 if (depth, block) == (5, 64) else 10)
                builder.time("configurations", own, value, f"feinbube2010.{system}")
                builder.rows[-1]["occupancy"] = block / 64
    for row in builder.rows:
        row["occupancy"] = 0.25 if row["block_size"] == 64 else 1.0
    own = {"n": 16, "depth": 5, "block_size": 512}
    builder.skip("configurations", own, "too many", "feinbube2010.opt4_compact")
    return builder


def test_the_best_configuration_with_its_occupancy() -> None:
    table = made("feinbube2010", "table_3", feinbube())
    base, final = table.rows
    assert base[:4] == ("base", "16", 5, 64)
    found = {c.heading: cell for c, cell in zip(table.columns, final, strict=True)}
    assert (found["occupancy (%)"], found["highest occupancy (%)"]) == (25, 100)
    assert found["total: slowest / best"] == pytest.approx(10.0004 / 1.0004, rel=1e-4)
    assert (found["timed"], found["not run"]) == (4, 1)
    for part, truth in (("total", 2.0004 / 1.0004), ("kernel", 2.0)):
        ratio = found[f"{part}: speed-up over base"]
        assert isinstance(ratio, Estimate)
        assert ratio.value == pytest.approx(truth, rel=1e-4), part
    assert found["split on the CPU (% of total)"] == pytest.approx(100 * 1e-4 / 1.0004, rel=1e-3)
    for card, quotient in CARDS.items():
        assert f"{quotient} ({card})" in str(found["total: speed-up over base, paper"])
    assert any("opt1_shared_stack" in note for note in table.notes)


EXACT = {"min": 2, "max": 47495, "mean": 6511.3, "variance": 1.453e7, "sd": 3812}


@pytest.mark.parametrize(("mean", "said"), [(6511.3, "exactly as printed"), (6600.0, "differ")])
def test_work_per_thread(mean: float, said: str) -> None:
    builder = zhang(sizes=(18,))
    own = levels(18, probe="iterations", encoding="masks", symmetry="mirror")
    work = EXACT | {"mean": mean}
    counted = {f"iterations_per_job_{name}": value for name, value in work.items()}
    counted |= {"warp_utilization_min": 0.16, "warp_utilization_max": 0.82}
    counted |= {"warp_utilization_mean": 0.559}
    builder.count("work", own, counted, "zhang2011.low_divergence")
    table = made("zhang2011", "table_6", builder)
    assert table.rows[0][1:] == ("2.00E+00", "4.75E+04", "6.51E+03", "1.45E+07", "3.81E+03")
    assert table.rows[1][1:4] == (2, 47495, mean)
    assert table.rows[-1][1:4] == pytest.approx((16, 82, 55.9))
    assert any(said in note for note in table.notes)
    assert any("no instrumented kernel counted cycles_per_job_min" in note for note in table.notes)


def test_divergence_stands_beside_the_printed_shares() -> None:
    builder = Builder(MINI)
    for n in (11, 12):
        for name in ("shared_no_conflict", "low_divergence"):
            own = levels(n, memory="shared", layout="interleaved")
            builder.count("kernels", own, counters_of(own), f"zhang2011.{name}")
    table = made("zhang2011", "divergence", builder)
    assert column(table, "divergent branches, paper") == ["22.6", "0.000846"]
    assert column(table, "divergent branches, here") == [pytest.approx(50, rel=1e-3)] * 2
    assert column(table, "split iterations, here") == [None, None]
    assert column(table, "counted at") == ["N=12", "N=12"]
    assert any("no instrumented kernel counted split_iteration_share" in n for n in table.notes)
    with pytest.raises(AnalysisError, match="Nsight Compute"):
        made("zhang2011", "divergence", zhang(sizes=(18,)))
