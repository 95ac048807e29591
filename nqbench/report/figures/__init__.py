"""Figures: one kind per file, found by the name that studies use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nqbench.analysis.data.dataset import Dataset
from nqbench.report.figures.bottleneck import bottleneck
from nqbench.report.figures.effects import effects
from nqbench.report.figures.heatmap import heatmap
from nqbench.report.figures.line import line, scaling
from nqbench.report.figures.ranking import ranking
from nqbench.report.figures.style import PreparedFigure
from nqbench.study.report_items import ReportItem

FigureBuilder = Callable[[Dataset, ReportItem], list[PreparedFigure]]
"""Prepares the data of its figures. Raises ``AnalysisError`` where there is nothing to show."""

FIGURES: Final[dict[str, FigureBuilder]] = {
    "effects": effects,
    "ranking": ranking,
    "heatmap": heatmap,
    "line": line,
    "scaling": scaling,
    "bottleneck": bottleneck,
}
