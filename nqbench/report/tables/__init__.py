"""Tables: found by the name that studies use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.report.table import Table
from nqbench.report.tables.bottleneck import bottleneck
from nqbench.report.tables.effects import effects, interactions
from nqbench.report.tables.results import resources, results, skipped, systems
from nqbench.study.report_items import ReportItem

TableBuilder = Callable[[Dataset, ReportItem], list[Table]]
"""Raises ``AnalysisError`` where the run holds nothing that the table could show."""

TABLES: Final[dict[str, TableBuilder]] = {
    "results": results,
    "effects": effects,
    "interactions": interactions,
    "systems": systems,
    "resources": resources,
    "skipped": skipped,
    "bottleneck": bottleneck,
}
