"""On a terminal: whole tables at any width, progress that stops, sentences that wrap."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from nqbench.cli.show import progress
from nqbench.cli.show.console import say
from nqbench.cli.show.points import show_points
from nqbench.cli.show.progress import PlainListener, RichListener
from nqbench.cli.show.tables import print_fitting
from nqbench.point import Point

NAMES = ["system", "memory", "layout", "assignment", "block_size"]
ROWS = [
    ["zhang2011.low_divergence", "shared", "interleaved", "one_per_thread", "128"],
    ["[odd] name", "global", "", "global_pool", "1024"],
]


def console(width: int, *, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, highlight=False)


def written(out: Console) -> str:
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def shown(width: int) -> str:
    out = console(width)
    print_fitting(out, Table(title="kernels"), NAMES, ROWS, "all of them")
    return written(out)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_no_cell_is_lost_at_any_width(width: int) -> None:
    text = shown(width)
    for row in ROWS:
        for cell in row:
            for word in cell.split():
                assert word in text, (width, cell)
    assert "kernels" in text
    assert "all of them" in text
    assert max(map(len, text.splitlines())) <= max(width, len(ROWS[0][0]))


def test_a_wide_terminal_gets_a_table_and_a_narrow_one_paragraphs() -> None:
    assert "block_size=1024" not in shown(120)
    assert "block_size=1024" in shown(40)
    assert "layout=," not in shown(40)


def test_a_step_before_the_first_stage_says_nothing() -> None:
    """Points that are skipped before anything starts belong to no stage."""
    out = console(80)
    PlainListener(out).advanced()
    assert written(out) == ""


def test_progress_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that still redraws itself writes over what is printed next, and hides the cursor."""
    out = console(80, terminal=True)
    monkeypatch.setattr(progress, "console", lambda stderr=False: out)
    opened = progress.progress()
    listener = opened.__enter__()
    assert isinstance(listener, RichListener)
    listener.stage("compile", 3)
    assert listener.progress.live.is_started
    assert not opened.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)  # not swallowed
    assert not listener.progress.live.is_started
    assert written(out).endswith("\x1b[?25h")


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


def test_a_table_gives_narrow_columns_what_they_need() -> None:
    names, rows = ["name", "a remark of several words"], [["x" * 12, "one two three four"]]
    out = console(40)
    print_fitting(out, Table(), names, rows)
    assert all(word in written(out) for word in ("x" * 12, "remark", "several", "three"))
