"""Tables: every point is there, failed ones without a value, times and counters apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nqbench.analysis.claims.functions import counter_of
from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.data.quantities import quantity
from nqbench.errors import AnalysisError
from nqbench.report.table import Table
from nqbench.report.tables.common import PROGRAM_NOTE
from nqbench.report.writer import BUILDERS
from nqbench.study.report_items import ReportItem, kinds
from tests.builders import H100, MINI, Builder, ablation
from tests.measure.programs import point
from tests.measure.test_runner import measure


def make(data: Dataset, name: str, of: str | None = None, **options: Any) -> list[Table]:
    return BUILDERS["table"][name](data, ReportItem("table", name, of=of, **options))


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def cells(table: Table, column: str) -> list[object]:
    i = names(table).index(column)
    return [row[i] for row in table.rows]


def test_results_list_every_point(measured: Dataset, simulated: Dataset) -> None:
    tables = make(measured, "results")
    assert [t.name.removeprefix("results-") for t in tables] == list(measured.sweeps)
    assert sum(len(t.rows) for t in tables) == len(measured.points)
    (table, _) = make(simulated, "results", of="systems", value="barriers")
    assert "barriers" in names(table)


def test_failed_and_skipped_points_are_listed_without_a_value(measured: Dataset) -> None:
    builder = Builder(H100, rounds=2)
    builder.time("s", {"n": 15, "depth": 3}, 1.0)
    builder.fail("s", {"n": 15, "depth": 4}, "wrong", "answer 1, expected 2")
    (table,) = make(builder.data(), "results")
    assert cells(table, "status") == ["ok", "wrong"]
    assert cells(table, "kernel time")[1] is None
    (skipped,) = make(builder.data(), "skipped")
    assert skipped.rows == (("s", "depth 4", 15, "wrong", "answer 1, expected 2"),)
    (skipped,) = make(measured, "skipped")
    assert len(skipped.rows) == sum(not p.ok for p in measured.points)
    assert all("bytes of shared memory" in str(reason) for reason in cells(skipped, "reason"))


def test_simulated_counters_and_cpu_times_never_share_a_table(simulated: Dataset) -> None:
    counters, times = make(simulated, "results", of="systems")
    assert not any(c.kind == "time" for c in counters.columns)
    assert "lane efficiency" not in names(times)
    assert "CPU baselines, measured" in times.title
    assert times.source.provenance == "measured, 5 rounds"
    assert times.source.device.endswith("(cpu)")
    assert counters.source.provenance == "simulated"


def test_interactions_name_what_reverses(measured: Dataset) -> None:
    (table,) = make(measured, "interactions", of="factorial")
    turned = [(r[2], r[8]) for r in table.rows if r[8]]
    assert turned == [("memory: global → shared", "layout")] * 4


def test_resources_have_one_column_for_a_level() -> None:
    builder = Builder(sweeps=[{"name": "s", "matrix": {"blocks": []}}])
    for blocks in ("1/SM", "5/SM"):
        builder.time("s", {"n": 15, "blocks": blocks}, 0.1)
    (table,) = make(builder.data(), "resources")
    assert names(table).count("blocks") == 1


def bare() -> Builder:
    """A point whose kernel nobody compiled."""
    builder = Builder(MINI)
    builder.count("s", {"n": 9, "depth": 3}, {"warp_instructions": 5})
    for name in ("registers", "occupancy"):
        del builder.rows[0][name]
    return builder


@pytest.mark.parametrize(
    ("builder", "table", "options", "said"),
    [
        (ablation, "effects", {"of": "factorail"}, "no sweep 'factorail' .it has: factorial, l"),
        (ablation, "effects", {}, "say which with `of`"),
        (lambda: ablation(MINI), "effects", {"of": "factorial", "value": "time"},
         "no finished point with a kernel time"),
        (bare, "resources", {}, "nqbench static"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_made(
    builder: Callable[[], Builder], table: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(AnalysisError, match=said):
        make(builder().data(), table, **options)


def test_every_table_carries_its_source(measured: Dataset, simulated: Dataset) -> None:
    forms = {form: set(kinds(form)) for form in ("table", "figure")}
    assert {form: set(BUILDERS[form]) for form in BUILDERS} == forms, "all that a study may name"
    for data, word in ((measured, "measured, 5 rounds"), (simulated, "simulated")):
        for name in BUILDERS["table"].keys() - {"bottleneck"}:  # of other runs, tested with them
            of = None if name in {"results", "resources", "skipped"} else "factorial"
            for table in make(data, name, of=of):
                baselines = table.name.endswith("-cpu")
                assert table.source.provenance == ("measured, 5 rounds" if baselines else word)
                assert table.source.command == "nqbench run configs/ablation.yaml"


# Programs, and systems of the CPU that are not called ``cpu.*``.

POINTS = [point(4), point(8), point(8, "sums.serial")]


def programs(tmp_path: Path, device: str) -> list[Table]:
    measure(tmp_path / "run", POINTS, device)
    return make(load_dataset(tmp_path / "run"), "results", of="sizes")


def test_times_of_programs_come_with_their_phases(tmp_path: Path) -> None:
    (table,) = programs(tmp_path, "fake:noise=0.01")
    shown = ["kernel time", "transfer time", "evaluation time", "other time", "total time"]
    assert [n for n in names(table) if n.endswith("time")] == shown
    at = {name: i for i, name in enumerate(names(table))}
    rows = {(str(row[0]), row[1]): row for row in table.rows}
    launched, serial = rows["sums.launched", 4], rows["sums.serial", 8]
    assert launched[at["evaluation time"]] is None
    assert launched[at["transfer time"]] == pytest.approx(
        float(str(launched[at["total time"]])) / 4, rel=0.05
    )
    assert serial[at["evaluation time"]] is not None
    assert PROGRAM_NOTE in table.notes
    said = "On the CPU, timed as a whole: sums.serial; kernel times"
    assert any(note.startswith(said) for note in table.notes)


def test_counters_of_a_run_are_totals_and_a_kernels_can_be_asked_for(tmp_path: Path) -> None:
    kernels, _ = programs(tmp_path, "sim")
    assert "warp instructions" in names(kernels)
    assert not any("@" in name or " of " in name for name in names(kernels))
    data = load_dataset(tmp_path / "run")
    small, large, _ = data.points
    part = quantity("global_requests@scale")
    assert part.label == "global requests of scale"
    values = [p.estimate(part) for p in (small, large)]
    assert [v.value for v in values if v] == [4 * 4 * 3, 4 * 8 * 3]
    assert counter_of(data, large, "global_requests@scale") == 4 * 8 * 3
    assert counter_of(data, large, "launches") == 9
    asked, *_ = make(data, "results", of="sizes", value="launches@scale")
    assert "launches of scale" in names(asked)
