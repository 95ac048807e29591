"""``nqbench check`` and what it prints, by kernels with planted mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from nqbench import inspection
from nqbench.cli.show.results import Races, look_for_races
from nqbench.devices.registry import open_simulator
from nqbench.inspection import Checked, check_points
from nqbench.simulator.mistakes import run_checked
from nqbench.study import expand, load_study
from tests.cli.call import call
from tests.simulator.harness import KERNELS

pytestmark = pytest.mark.usefixtures("undrawn")

EXAMPLES = Path(__file__).parents[2] / "examples"
STUDY = Path(__file__).with_name("planted.yaml").read_text(encoding="utf-8")


@pytest.fixture
def study(tmp_path: Path) -> str:
    path = tmp_path / "planted.yaml"
    path.write_text(STUDY.format(source=KERNELS / "planted.cu"), encoding="utf-8")
    return str(path)


def test_each_place_is_reported_once_with_its_lines_and_threads(study: str) -> None:
    done = call("check", study)
    assert done.code == 1
    assert done.out.count("planted.cu:") == 1
    assert "race, 192 times, in kernel read_after_write" in done.out
    assert "| out[blockIdx.x * 96 + T] = s[95 - T];  // bad: race" in done.out
    assert "| s[T] = T;" in done.out
    assert "block 0, thread 32 reads s[63] = 63, which thread 63 wrote" in done.out
    assert "2 points checked: race (1)" in done.out


def test_the_same_as_json(study: str) -> None:
    done = call("check", study, "--json", "--device", "sim:mini:reverse")
    data = json.loads(done.out)
    assert (done.code, len(data["checked"]), data["device"]) == (1, 2, "sim:mini:reverse")
    (found,) = data["findings"]
    lines = {found["text"], found["other"]["text"]}
    assert lines == {"s[T] = T;", "out[blockIdx.x * 96 + T] = s[95 - T];  // bad: race"}
    assert (found["kind"], found["space"], found["buffer"]) == ("race", "shared", "s")
    assert all(len(thread["block"]) == 3 for thread in found["threads"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--point", "kernel=read_after_write_right"], 0, "1 point checked: nothing wrong"),
        (["--point", "kernel=read_befor_write"], 2, "has kernel read_after_write or read_after_w"),
        (["--point", "kernle=x"], 2, "did you mean 'kernel'?"),
        (["--point", "kernel"], 2, "write FACTOR=LEVEL"),
        (["--n", "8"], 2, "has n 96"),
        (
            ["--point", "kernel=read_after_write", "--point", "kernel=read_after_write_right"],
            *(1, "2 points checked: race (1)"),
        ),
        (["--n", "96", "--n", "8"], 2, "--n 8: "),
        (["--point", "kernel=read_after_write,bx=2"], 2, "its own --point: --point bx=2"),
        (["--device", "cpu"], 2, "is no simulator"),
    ],
)
def test_points_and_mistakes_in_a_call(study: str, words: list[str], code: int, said: str) -> None:
    done = call("check", study, *words)
    assert (done.code, said in done.said) == (code, True), done.said


KERNEL = ["--entry", "read_after_write", "--grid", 2, "--block", 96]
OUT, RAW = ["--arg", "out: int32[192] = zeros"], ["--arg", "raw: int32[2, 96]"]
FILES: dict[str, tuple[list[Any], int, str]] = {
    "a launch": ([*KERNEL, *OUT, *RAW], 1, "1 point checked: race (1)"),
    "no block": ([*KERNEL, *OUT, *RAW, "--grid", 0], 2, "nqbench: --grid 0: `0` is 0, but must"),
    "four numbers": ([*KERNEL, "--block", "1,1,1,1"], 2, "'block' takes at most 3 values, not 4"),
    "a wide block": ([*KERNEL, *OUT, *RAW, "--block", 2048], 2, "4 multiprocessors)\n"),
    "a half": ([*KERNEL, *OUT, "--arg", "raw: int8 = 1.5"], 2, "is 1.5, which int8 cannot hold\n"),
    "annotations": ([*KERNEL, *OUT, *RAW, "--format", "github"], 1, "line=64,title=nqbench%3A r"),
    "no bytes": ([*KERNEL, *OUT, *RAW, "--shared", "-5"], 2, "--shared -5: `-5` is -5, but must"),
    "no launch": (["--entry", "read_after_write"], 2, "--grid and --block must be given: --entry"),
    "no size": ([*KERNEL, "--arg", "m: int32"], 2, "--arg 'm: int32' cannot be read; write 'x: f"),
    "too few": ([*KERNEL, *OUT], 1, "takes 2 arguments, but 1 is given: out"),
    "far too large": ([*KERNEL, *OUT, "--arg", "raw: int32[10**9]"], 2, "take 4,000,000,"),
    "too large": ([*KERNEL, *OUT, "--arg", "raw: int32[10**8]"], 1, "the 268,435,456 of the check"),
    "no folder": ([*KERNEL, *OUT, *RAW, "--include", "nowhere"], 2, "--include nowhere: "),
    "given twice": ([*KERNEL, *OUT, *OUT], 2, "--arg out is given twice"),
    "of C++": ([*KERNEL, "--arg", "m: int[4]"], 2, "--arg 'm: int[4]': 'm' has the dtype 'int'; d"),
    "a struct": ([*KERNEL, "--arg", "p: Point[4]"], 2, "is its bytes, of type uint8"),
    "a struct by value": ([*KERNEL, "--arg", "d: dim3 = 1"], 2, "by value: `fields` in YAML"),
    "another name": ([*KERNEL, "--arg", "m: int32 = 5", "--grid", "k * m"], 2, "--grid 'k * m': "),
    "a number": ([*KERNEL, *OUT, *RAW, "--arg", "m: int8 = 2", "--grid", "m"], 1, "3 are given"),
    "deep": ([*KERNEL, *OUT, "--block", "1,1,65"], 2, "--block 1,1,65: 65 threads along z"),
    "a point": ([*KERNEL, *OUT, "--point", "n=1"], 2, "--point has no effect here"),
    "another format": ([*KERNEL, "--format", "html"], 2, "--format html: write --format github"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_kernel_in_a_file(case: str) -> None:
    words, code, said = FILES[case]
    done = call("check", KERNELS / "planted.cu", *words)
    assert (done.code, said in done.said, "study" in done.said) == (code, True, False), done.said


def test_a_number_called_n_is_one_like_others(tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "types.h").write_text("typedef float Number;")
    text = "__global__ void k(Number* x, int n) { x[threadIdx.x] = n; }"
    text = '#include "types.h"\n' + 98 * "\n" + text
    (tmp_path / "k.cu").write_text(text)  # at line 100, which is no emoji
    launch = [*("--entry", "k", "--grid", 1, "--block", 32, "--include", tmp_path / "headers")]
    launch += ["--arg", "x: float32[n]", "--arg"]
    assert call("check", tmp_path / "k.cu", *launch, "n: int32 = 32").code == 0
    said = "--arg 'n: int8 = 32': n: the kernel takes int, not int8"
    assert said in call("check", tmp_path / "k.cu", *launch, "n: int8 = 32").said
    assert "k.cu:100: out" in call("check", tmp_path / "k.cu", *launch, "n: int32 = 16").out
    found_json = call("check", tmp_path / "k.cu", *launch, "n: int32 = 16", "--json").out
    (found,) = json.loads(found_json)["findings"]
    assert (found["kind"], found["buffer"], found["points"]) == ("out of bounds", "x", ["k"])


def test_loading_the_checks_is_no_part_of_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new installation compiles them for many seconds."""
    seen = mock.Mock()
    monkeypatch.setattr(inspection, "provide_watcher", seen.compiled)
    check_points([], open_simulator("sim:mini", checked=True), seen)
    assert [name for name, *_ in seen.method_calls] == ["stage", "compiled", "stage"]


def test_findings_before_interruption_are_said(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second point is stopped by Ctrl-C."""
    launches: Iterator[Any] = iter([run_checked, mock.Mock(side_effect=KeyboardInterrupt)])
    monkeypatch.setattr(inspection, "run_checked", lambda *plan: next(launches)(*plan))
    done = call("check", study)
    assert done.code == 130
    assert "1 point left out\n1 point checked: race (1)" in done.out
    assert "interrupted; nothing was measured" in done.err


@pytest.mark.parametrize("command", ["check", "run", "explain", "static"])
def test_a_kernel_is_no_study(command: str, tmp_path: Path) -> None:
    said = "nqbench: there is no file near.cu; did you mean neat.cu?\n"
    if command != "check":
        said = (
            "nqbench: near.cu is a file with a kernel, not a study: `nqbench check near.cu` checks"
            " a launch of it, `nqbench init near` writes a study to start from\n"
        )
    (tmp_path / "neat.cu").touch()
    (tmp_path / "folder.cu").mkdir()
    assert "folder" in call(command, "folder.cu", cwd=tmp_path).err
    done = call(command, "near.cu", cwd=tmp_path)
    assert (done.code, done.err) == (2, said)


def test_systems_and_examples_are_clean() -> None:
    done = call("check", "zhang2011.pool_distributed", "--point", "block_size=64")
    assert (done.code, "1 point checked: nothing wrong was found" in done.out) == (0, True)
    done = call("check", EXAMPLES / "reduction" / "reduction.yaml", "--point", "items=1")
    assert (done.code, "4 points checked" in done.out) == (0, True)
    assert call("check", "tanaka2011.nine").code == 2
    for option in ("--entry", "--shared"):
        assert f"{option} has no effect here" in call("check", "quick", option, 4).err


RACE = "race, 192 times"
ENDINGS: dict[str, tuple[int, list[str], list[str]]] = {
    "planted.yaml -d sim": (1, [RACE, "races: 1 found at N = 96 (2 configurations, "], []),
    "planted.yaml -d sim --no-check": (
        *(1, ["races: not checked (nqbench check planted.yaml)", "`nqbench check planted.yaml`"]),
        [RACE],
    ),
    "right.yaml -d sim:mini:cache": (
        *(0, ["races: none found at N = 96 (1 configuration, "], [RACE, "find races"]),
    ),
}


def test_a_run_of_a_kernel_of_ones_own_ends_with_its_races(study: str) -> None:
    folder, planted = Path(study).parent, Path(study).read_text(encoding="utf-8")
    right = planted.replace("[read_after_write, ", "[").replace("name: planted", "name: right")
    (folder / "right.yaml").write_text(right, encoding="utf-8")
    for words, (code, said, not_said) in ENDINGS.items():
        done = call("run", *words.split(), "--no-report", cwd=folder)
        assert done.code == code, done.said
        assert all(part in done.out for part in said), done.out
        assert not any(part in done.out for part in not_said), done.out
    data = json.loads(call("run", "planted.yaml", "-d", "sim", "--json", cwd=folder).out)
    found = data["runs"][0]["check"]
    assert (len(found["checked"]), found["findings"][0]["kind"]) == (2, "race")


def test_what_was_not_checked_is_said(study: str) -> None:
    loaded, device = load_study(Path(study)), open_simulator("sim:mini", checked=True)
    on_gpu = look_for_races(loaded, "conv.yaml", [], "cuda:0")
    assert on_gpu is not None
    assert on_gpu.line() == "races: not checked (nqbench check conv.yaml)"
    quick = look_for_races(load_study(Path("quick")), "quick", [], "sim:mini")
    assert quick is not None
    assert not quick.own
    points = expand(loaded, device.facts)
    (late,) = (check_points(points, device, limit_s=0).late,)
    assert len(late) == 2
    some = Races(
        "nqbench check x", found=Checked(checked=["a"], late=["b", "c"], sizes=[8], wall_s=10)
    )
    assert some.line() == (
        "races: none found at N = 8 (1 of 3 configurations, 10 s); for the others: nqbench check x"
    )
