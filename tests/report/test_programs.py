"""What tables show of programs, and of systems of the processor that are not called ``cpu.*``."""

from __future__ import annotations

from pathlib import Path

import pytest

from nqbench.analysis.claims.functions import counter_of
from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.observed import Observed
from nqbench.analysis.data.quantities import quantity
from nqbench.errors import AnalysisError
from nqbench.report.table import Table
from nqbench.report.tables import TABLES
from nqbench.report.tables.common import CPU_NOTE, PROGRAM_NOTE
from nqbench.study.report_items import ReportItem
from tests.measure.programs import point
from tests.measure.test_runner import measure

POINTS = [point(4), point(8), point(8, "sums.serial")]


def tables(tmp_path: Path, device: str) -> list[Table]:
    measure(tmp_path / "run", POINTS, device)
    return TABLES["results"](
        load_dataset(tmp_path / "run"), ReportItem("table", "results", of="sizes")
    )


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def test_times_of_programs_come_with_their_phases(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, "fake:noise=0.01")
    shown = ["kernel time", "transfer time", "evaluation time", "other time", "total time"]
    assert [n for n in names(table) if n.endswith("time")] == shown
    at = {name: i for i, name in enumerate(names(table))}
    launched, _, serial = table.rows
    assert launched[at["evaluation time"]] is None
    assert launched[at["transfer time"]] == pytest.approx(
        float(str(launched[at["total time"]])) / 4, rel=0.05
    )
    assert serial[at["evaluation time"]] is not None
    assert PROGRAM_NOTE in table.notes
    assert CPU_NOTE not in table.notes
    assert any(
        note.startswith("sums.serial runs on the CPU and is timed as a whole")
        for note in table.notes
    )


def test_counters_of_a_run_are_totals_and_those_of_a_kernel_can_be_asked_for(
    tmp_path: Path,
) -> None:
    kernels, _ = tables(tmp_path, "sim")
    assert "warp instructions" in names(kernels)
    assert not any("@" in name or " of " in name for name in names(kernels))
    data = load_dataset(tmp_path / "run")
    small, large, _ = data.points
    part = quantity("global_requests@scale")
    assert part.label == "global requests of scale"
    values = [p.estimate(part) for p in (small, large)]
    assert [v.value for v in values if v] == [4 * 4 * 3, 4 * 8 * 3]
    run = Observed(tmp_path / "run", data)
    assert counter_of(run, large, "global_requests@scale") == 4 * 8 * 3
    assert counter_of(run, large, "launches") == 9
    item = ReportItem("table", "results", of="sizes", value="launches@scale")
    asked = TABLES["results"](data, item)[0]
    assert "launches of scale" in names(asked)


def test_a_counter_of_a_kernel_is_still_a_counter() -> None:
    assert quantity("lane_efficiency@scale").better == "higher"
    with pytest.raises(AnalysisError, match="did you mean 'launches'"):
        quantity("launchs@scale")
