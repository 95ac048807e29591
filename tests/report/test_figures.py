"""Figures: what they say, that series differ without colour, that nothing is drawn that failed."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.quantities import TIME, Quantity, quantity
from nqbench.errors import AnalysisError
from nqbench.report.figures import axes
from nqbench.report.figures.axes import digits, short
from nqbench.report.figures.style import Drawing, save, styled
from nqbench.report.table import source_of
from nqbench.report.writer import BUILDERS
from nqbench.study.report_items import ReportItem
from tests.builders import H100, MINI, SYSTEMS, Builder, factorial

ITEMS = {
    "effects": {"of": "factorial"},
    "ranking": {"of": "factorial"},
    "heatmap": {"of": "launch", "x": "block_size", "y": "depth"},
    "line": {"of": "pool", "x": "pool_size", "series": "system"},
    "scaling": {"of": "systems", "series": "system"},
}


@pytest.fixture(autouse=True)
def look() -> Iterator[None]:
    with styled():
        yield


@cache
def drawn(data: Dataset, item: ReportItem) -> list[Drawing]:
    """Figures that tests only look at, each drawn once."""
    return [figure() for figure in BUILDERS["figure"][item.name](data, item)]


def draw(data: Dataset, name: str, **options: Any) -> list[Drawing]:
    return drawn(data, ReportItem("figure", name, **options))


def svg(drawing: Drawing, data: Dataset, folder: Path) -> str:
    path = folder / f"{drawing.name}.svg"
    save(drawing, path, source_of(data))
    return path.read_text(encoding="utf-8")


def texts_of(drawing: Drawing, panel: int | None = None) -> list[str]:
    """The texts of a panel, or those around all panels."""
    place = drawing.figure if panel is None else drawing.figure.axes[panel]
    return [text.get_text() for text in place.texts]


def depths(values: dict[int, Sequence[int]]) -> Dataset:
    """A run with the depths of each size, each deeper one twice as fast."""
    builder = Builder(H100)
    for n, levels in values.items():
        for depth in levels:
            builder.time("s", {"n": n, "depth": depth}, 2.0**-depth)
    return builder.data()


@pytest.mark.parametrize("kind", ["measured", "simulated"])
@pytest.mark.parametrize("name", ITEMS)
def test_every_figure_is_complete(
    name: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It names device, provenance and command; no text is cut off, and no two collide."""
    data: Dataset = request.getfixturevalue(kind)
    for drawing in draw(data, name, **ITEMS[name]):
        shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg(drawing, data, tmp_path))
        for part in (data.device, kind, "nqbench run configs/ablation.yaml", drawing.title):
            assert part in " ".join(shown)
        (other,) = {"measured", "simulated"} - {kind}
        assert other not in next(text for text in shown if "nqbench run" in text)
        check_texts(drawing.figure)


def check_texts(figure: Any) -> None:
    """None leaves the figure, and no two collide."""
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    width, height = figure.canvas.get_width_height()
    texts = _drawn_texts(figure)
    boxes = [text.get_window_extent(renderer) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert min(box.x0, box.y0) >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    for (one, a), (two, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not _overlap(a, b), (one.get_text(), two.get_text())


def _drawn_texts(figure: Any) -> list[Any]:
    """Every text that is drawn: titles, labels, ticks in view, legends, annotations, footer."""
    texts = [*figure.texts, *(t for legend in figure.legends for t in legend.get_texts())]
    for ax in figure.axes:
        if ax.get_legend():
            texts += ax.get_legend().get_texts()
        texts += [*ax.texts, ax._left_title]
        if ax.axison:
            texts += [ax.xaxis.label, ax.yaxis.label]
            texts += [*_tick_labels(ax.xaxis), *_tick_labels(ax.yaxis)]
    return [t for t in texts if t.get_visible() and t.get_text().strip()]


def _tick_labels(axis: Any) -> list[Any]:
    """Labels of the ticks in view; those beyond the limits exist, but are not drawn."""
    low, high = sorted(axis.get_view_interval())
    ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [t.label1 for t in ticks if t.label1.get_visible() and t.label1.get_text()]


def _overlap(one: Any, two: Any) -> bool:
    across = min(one.x1, two.x1) - max(one.x0, two.x0)
    down = min(one.y1, two.y1) - max(one.y0, two.y0)
    return bool(across > 1 and down > 1)


def _line(container: Any) -> Any:
    """The line of an error-bar container."""
    return container.lines[0]


def test_scaling_draws_cpu_times_with_measured_kernels_but_not_with_counters(
    measured: Dataset, simulated: Dataset
) -> None:
    (together,) = draw(measured, "scaling", **ITEMS["scaling"])
    labels = together.figure.axes[0].get_legend_handles_labels()[1]
    assert {"cpu.somers", "cpu.multicore", SYSTEMS[0]} <= set(labels)
    (apart,) = draw(simulated, "scaling", **ITEMS["scaling"])
    every = [label for ax in apart.figure.axes for label in ax.get_legend_handles_labels()[1]]
    assert SYSTEMS[0] in every
    assert not any(label.startswith("cpu.") for label in every)


def test_heatmap_hatches_what_does_not_fit_and_outlines_the_best(measured: Dataset) -> None:
    (drawing,) = draw(measured, "heatmap", **ITEMS["heatmap"])
    ax = drawing.figure.axes[0]
    points = measured.select("launch")
    assert sum(bool(p.get_hatch()) for p in ax.patches) == sum(not p.ok for p in points)
    (outline,) = [p for p in ax.patches if not p.get_fill()]
    estimates = {p: p.estimate(TIME) for p in points if p.ok}
    best = min(estimates, key=lambda p: estimates[p].value)  # type: ignore[union-attr]
    xs = [t.get_text() for t in ax.get_xticklabels()]
    ys = [t.get_text() for t in ax.get_yticklabels()]
    x, y = round(outline.get_x()), round(outline.get_y())  # type: ignore[attr-defined]
    assert (xs[x], ys[y]) == (str(best.level("block_size")), str(best.level("depth")))


def test_ranking_is_sorted_and_has_the_levels_beside_it(measured: Dataset) -> None:
    (drawing,) = draw(measured, "ranking", **ITEMS["ranking"])
    matrix, values = drawing.figure.axes
    spots = sorted(
        (y, x) for c in values.containers for x, y in zip(*_line(c).get_data(), strict=True)
    )
    assert len(spots) == 24
    assert [x for _, x in spots] == sorted(x for _, x in spots)
    names = [t.get_text() for t in matrix.get_xticklabels()]
    assert names[:2] == ["global", "shared"]
    assert {t.get_text() for t in matrix.texts} >= {"memory", "layout", "loop", "assignment"}


def test_line_has_a_reference_for_what_lacks_the_factor(measured: Dataset) -> None:
    (drawing,) = draw(measured, "line", **ITEMS["line"])
    labels = drawing.figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["zhang2011.low_divergence (no pool_size)", "zhang2011.pool_distributed"]


def test_a_line_is_broken_where_a_level_was_left_out() -> None:
    data = depths({15: (3, 4, 5, 6), 16: (4, 6), 17: (5, 6)})
    (drawing,) = draw(data, "line", of="s", x="depth")
    lines = [_line(ax.containers[0]).get_data() for ax in drawing.figure.axes[:3]]
    shown = [[x for x, y in zip(*line, strict=True) if not math.isnan(y)] for line in lines]
    assert shown == [[3, 4, 5, 6], [4, 6], [5, 6]]
    assert [any(map(math.isnan, y)) for _, y in lines] == [False, True, False]
    ticks = [t.get_text() for t in drawing.figure.axes[1].get_xticklabels()]
    assert ticks == ["4", "5", "6"]
    assert any("broken at a depth" in text for text in texts_of(drawing))


@pytest.mark.parametrize(
    ("workload", "program", "words"),
    [
        ("fitness", True, "time of a run (lower is better)"),
        ("counting", False, "kernel time (lower is better)"),
    ],
)
def test_an_axis_says_what_was_timed(workload: str, program: bool, words: str) -> None:
    builder = Builder(H100, workload=workload)
    for depth in (3, 4):
        builder.time("s", {"n": 15, "depth": depth}, 1.0, other_s=0.1 if program else None)
    (drawing,) = draw(builder.data(), "line", of="s", x="depth")
    assert drawing.figure.axes[0].get_ylabel() == words


def test_zeros_say_so_on_their_axis_and_in_words(simulated: Dataset) -> None:
    drawings = draw(simulated, "line", **ITEMS["line"], value="bank_conflicts")
    assert texts_of(drawings[0], 0) == ["0 at every point"]
    ranking = draw(simulated, "ranking", **ITEMS["ranking"], value="bank_conflicts")
    assert ranking[0].figure.axes[1].get_xscale() == "symlog"
    (effects,) = draw(simulated, "effects", **ITEMS["effects"], value="bank_conflicts")
    assert any("-> 0 +" in text for text in texts_of(effects, 0))
    (effects,) = draw(simulated, "effects", **ITEMS["effects"])
    assert any(" \u00d7 " in text for text in texts_of(effects, 0)), "an interaction"


@pytest.mark.parametrize("name", ITEMS)
def test_what_cannot_be_drawn_is_a_sentence(name: str) -> None:
    builder = Builder(H100)
    for depth in (2, 3):
        builder.fail("s", {"n": 15, "depth": depth, "block_size": 32}, "launch_error")
    options = {k: v for k, v in ITEMS[name].items() if k in {"x", "y"}}
    with pytest.raises(AnalysisError, match="no finished point"):
        draw(builder.data(), name, **options)
    if options:
        data, other = factorial(sizes=(15,)).data(), "series" if name == "line" else "y"
        with pytest.raises(AnalysisError, match="another factor varies too"):
            draw(data, name, of="factorial", x="memory", **{other: "layout"})


@pytest.mark.parametrize(
    ("sizes", "slow", "scales"),
    [((10, 79), 30.0, ("linear", "log")), ((10, 80), 3.0, ("log", "linear"))],
)
def test_sizes_and_ratios_far_apart_stand_on_logarithmic_axes(
    sizes: Sequence[int], slow: float, scales: tuple[str, str]
) -> None:
    builder = Builder(H100, sweeps=[{"name": "s", "systems": list(SYSTEMS[:2])}])
    for n, (system, time_s) in itertools.product(
        sizes, ((SYSTEMS[0], 0.1), (SYSTEMS[1], 0.1 * slow))
    ):
        builder.time("s", {"n": n}, time_s, system)
    (drawing,) = draw(builder.data(), "scaling", of="s", series="system")
    relative = drawing.figure.axes[1]
    assert (relative.get_xscale(), relative.get_yscale()) == scales


@pytest.mark.parametrize("device", [H100, MINI], ids=["gpu", "simulator"])
def test_a_sweep_of_the_host_alone_has_its_line(device: dict[str, Any]) -> None:
    made = Builder(device, rounds=3)
    for threads in (1, 2, 4):
        made.time("threads", {"n": 300, "threads": threads}, 1e-3 / threads, "cpu.threads")
        for row in made.rows[-made.rounds - 1 :]:
            row |= {"device": "cpu", "device_kind": "cpu", "simulated": False}
    made.time("kernels", {"n": 300}, 1.0, "a.kernel")
    data = made.data()
    (drawing,) = draw(data, "line", of="threads", x="threads")
    assert drawing.title == "CPU time against threads"
    heights = np.asarray(_line(drawing.figure.axes[0].containers[0]).get_ydata())
    assert heights == pytest.approx([1e-3, 5e-4, 2.5e-4], rel=0.05)


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        (TIME, {0.0: "0", 0.012345: "12.3 ms", 1.0: "1 s", 250.0: "250 s", 3.2e-7: "320 ns"}),
        (quantity("branches"), {0: "0", 999: "999", 1000: "1k", 1234567: "1.23M", 0.25: "0.25"}),
    ],
)
def test_values_in_few_characters(what: Quantity, shown: dict[float, str]) -> None:
    assert {value: short(value, what) for value in shown} == shown
    assert (digits(24.0, keep_zeros=True), digits(24.0)) == ("24.0", "24")


# The axis of ratios.

LOW = st.floats(-9, -0.05).map(lambda exponent: 10.0**exponent)
HIGH = st.floats(0.05, 9).map(lambda exponent: 10.0**exponent)


@cache
def panel() -> Axes:
    return Figure().subplots()


@given(LOW, HIGH)
def test_every_axis_can_be_read(low: float, high: float) -> None:
    """Its labels are short and say where the ticks are, which leave no dot far outside them."""
    ax = panel()
    low, high = axes.ratio_axis(ax, [low, high])
    ticks = list(ax.xaxis.get_major_locator().tick_values(low, high))
    assert 1.0 in ticks
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= axes.MAX_TICKS
    assert low <= ticks[0] <= ticks[-1] <= high
    assert math.log(ticks[-1] / ticks[0]) >= 0.3 * math.log(high / low)
    labels = ax.xaxis.get_major_formatter().format_ticks(ticks)
    for label, tick in zip(labels, ticks, strict=True):
        number = label.rstrip("x").replace("k", "e3").replace("M", "e6").replace("G", "e9")
        assert math.isclose(float(number), max(tick, 1 / tick))
    assert max(map(len, labels)) <= 5


def test_names_of_any_length_and_kind_are_drawn(tmp_path: Path) -> None:
    """Matplotlib complains of none (warnings are errors), and no label is wider than the figure."""
    run = Builder(rounds=2)
    for i in range(3):
        run.time("s", {"n": 15, "loop": f"{i}{'x' * 300}\x1b$\\frac$", "memory": "\u4e16"}, 0.1 + i)
    for name in ("effects", "ranking"):
        (draw,) = BUILDERS["figure"][name](run.data(), ReportItem(form="figure", name=name))
        with styled():
            drawing = draw()
            save(drawing, tmp_path / "x.svg", source_of(run.data()))
        text = (tmp_path / "x.svg").read_text(encoding="utf-8")
        assert "x" * 10 in text
        assert "x" * 140 not in text
        assert "\x1b" not in text
