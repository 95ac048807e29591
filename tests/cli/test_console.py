"""On a terminal: whole tables at any width, progress that stops, sentences that wrap."""

from __future__ import annotations

import io
from typing import cast

import pytest
from rich.console import Console

from nqbench.cli.show import progress
from nqbench.cli.show.console import say, show_table
from nqbench.cli.show.listings import show_points
from nqbench.cli.show.progress import Display, ProgressRow
from nqbench.cli.show.results import show_reasons
from nqbench.point import Point
from nqbench.record import Record
from nqbench.vocabulary import Status

NAMES = ["system", "memory", "layout", "assignment", "block_size"]
ROWS = [
    ["zhang2011.low_divergence", "shared", "interleaved", "one_per_thread", "128"],
    ["[odd] name", "global", "", "global_pool", "1024"],
]


def console(width: int, *, terminal: bool = False) -> Console:
    stream = io.StringIO()
    return Console(
        file=stream, width=width, force_terminal=terminal, highlight=False, color_system=None
    )


def written(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def shown(width: int) -> str:
    out = console(width, terminal=True)
    show_table(NAMES, ROWS, "all of them", out=out)
    return written(out)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_no_cell_is_lost_at_any_width(width: int) -> None:
    text = shown(width)
    for row in ROWS:
        for cell in row:
            for word in cell.split():
                assert word in text, (width, cell)
    assert "all of them" in text
    assert max(map(len, text.splitlines())) <= max(width, len(ROWS[0][0]))
    assert ("block_size=1024" in text) == (width <= 60), "a narrow terminal gets paragraphs"
    assert "layout=," not in text


POINTS = [
    Point("s", "crossed", "counting", None, {"n": n, "memory": memory})
    for n in (8, 9)
    for memory in ("shared", "global")
]


def record(point: Point, status: Status = "ok", reason: str = "") -> Record:
    fields = {"sweep": point.sweep, "system": None, "label": "", "factors": point.factors}
    return Record("k", fields, "cuda:0", 1, status, reason, value_s=0.0125)


def measure_some(row: ProgressRow) -> None:
    """Two of four points in each of two rounds; one fails."""
    row.points(POINTS)
    row.stage("timing, round 1 of 2", 4)
    row.ahead(4)
    for point, status in ((POINTS[0], "ok"), (POINTS[1], "timeout")):
        row.started(point, timed=True)
        row.advanced(record(point, cast("Status", status), "too long"))
    row.started(POINTS[2], timed=True)


def test_a_log_gets_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    out = console(80)
    Display(out).row("").advanced()  # points that are skipped before anything starts
    assert written(out) == ""
    row, clock = Display(out).row("cuda:1"), iter([0.0, *[12.0] * 9])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    measure_some(row)
    assert written(out).splitlines() == [
        "cuda:1: timing, round 1 of 2: 4",
        "cuda:1: timing, round 1 of 2: 1 of 4, 5 per minute, 84 s left",
        "cuda:1: timeout: crossed N=8: too long",
    ]


def test_the_live_lines_say_how_far_it_is_and_what_is_measured() -> None:
    out = console(80, terminal=True)
    display = Display(out, live=True)
    try:
        row = display.row("")
        measure_some(row)
        row.began -= 60
        paper = console(80)
        paper.print(display.render())
        line, now, _ = written(paper).splitlines()
        assert line == "timing, round 1 of 2: 2 of 4, 2 per minute, 3 min 0 s left"
        assert now == "now: crossed N=9 memory=shared"
        display.row("cuda:1").stage("checking answers", 3)
        paper.print(display.render())
        last = written(paper).splitlines()[-3:-1]
        assert "timing, round 1 of 2: 2 of 4" in last[0], "a line for each device"
        assert last[1].strip() == "cuda:1: checking answers: 0 of 3"
    finally:
        display.close()


def test_a_point_is_drawn_before_it_is_timed_and_nothing_after_the_end() -> None:
    out = console(80, terminal=True)
    display = Display(out, live=True)
    row = display.row("")
    row.stage("timing, round 1 of 1", 2)
    display._drawn = 0.0  # long ago
    row.started(POINTS[0], timed=True)
    before = written(out)
    assert "now: crossed N=8" in before
    row.advanced(record(POINTS[0]))
    assert written(out) == before
    display.close()
    before = written(out)
    row.stage("timing, round 2 of 2", 2)
    assert written(out) == before


def test_progress_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that still redraws itself writes over what is printed next, and hides the cursor."""
    out = console(80, terminal=True)
    monkeypatch.setattr(progress, "console", lambda stderr=False: out)
    monkeypatch.setattr(progress, "Display", lambda out, **_: Display(out, live=True))
    opened = progress.progress()
    opened.__enter__().stage("compile", 3)
    assert "compile: 0 of 3" in written(out)
    assert not opened.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)  # not swallowed
    assert written(out).endswith("\x1b[1A\x1b[2K")


@pytest.mark.parametrize("width", [20, 40, 200])
def test_sentences_break_between_words(width: int) -> None:
    """On a terminal; a path stays whole, and a pipe gets one line."""
    text = "lane efficiency multiplies by 1.104, see plots/local/sim-mini/a-study/report.md now"
    terminal, pipe = console(width, terminal=True), console(width)
    say(text, terminal, bullet="* ")
    lines = written(terminal).splitlines()
    assert lines[0].startswith("* lane")
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(lines).replace("* ", "").split() == text.split()
    say(text, pipe)
    assert written(pipe) == f"{text}\n"


def test_a_factor_called_jobs_keeps_its_levels(capsys: pytest.CaptureFixture[str]) -> None:
    points = [
        Point("s", "a", "own", None, {"n": 8, "jobs": level}, {"jobs": 256})
        for level in ("few", "many")
    ]
    show_points(points, None)
    out = capsys.readouterr().out
    assert "few" in out
    assert "many" in out
    assert "256" not in out


def test_points_without_a_value_are_grouped_by_reason(capsys: pytest.CaptureFixture[str]) -> None:
    slow = [("skipped", f"crossed N={n}", f"one launch of {n:#x} takes {n} s") for n in (9, 10)]
    show_reasons([*slow, ("wrong", "crossed N=8", "the answer is 1")])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [
        ["skipped", "2", "crossed", "N=9", "one", "launch", "of", "0x9", "takes", "9", "s"],
        ["wrong", "1", "crossed", "N=8", "the", "answer", "is", "1"],
    ]
    show_reasons(("skipped", "a", reason) for reason in "abcdefghijkl")
    assert capsys.readouterr().out.endswith("... and 2 more reasons\n")
    show_reasons([*slow, ("skipped", "a", "no")], some_ran=True)
    line = capsys.readouterr().out
    assert line.startswith("3 points skipped, for 2 reasons: see `What did not run, and why`")
    assert line.count("\n") == 1


def test_a_long_table_is_lines_in_columns() -> None:
    out = Console(file=io.StringIO(), width=40)
    show_table(["a", "b"], [["x" * (1 + i % 3), "long " * 20] for i in range(400)], out=out)
    assert isinstance(out.file, io.StringIO)
    lines = out.file.getvalue().splitlines()
    assert len(lines) == 401
    assert {line.index("long") for line in lines[1:]} == {5}
