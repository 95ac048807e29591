"""External programs as systems: from a study beside a script to records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nqbench.devices.command import CALLER_PATH, Ran, _seconds
from nqbench.devices.cpu import CpuDevice
from nqbench.devices.registry import facts_for
from nqbench.errors import ProgramFault, StudyError
from nqbench.measure.measurement import Measurement
from nqbench.measure.run_state import RunOutcome
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import WorkerProcess
from nqbench.measure.worker.session import Session
from nqbench.point import Executable, Point
from nqbench.runs.frame import load
from nqbench.runs.reading import read_manifest, read_records
from nqbench.study import expand, load_study
from tests.cli.call import call
from tests.measure.test_pool import wait_gone, wait_until
from tests.toys import run_here

ANSWER = {"answer": r"^(\d+)"}
TIME = {**ANSWER, "time": r"time=(\S+?) ?(?:[num]?s)?$"}
CPU = CpuDevice().facts
SIX = "echo 4\n"  # the solutions for 6 queens


def study_of(folder: Path, *systems: Any, n: Any = 6, **more: Any) -> Path:
    """A study file with these systems in a folder."""
    path = folder / "study.yaml"
    measure = {"rounds": 2, "samples": 2, "budget": "40ms", "timeout": "60s", "long": ["mine"]}
    data = {"name": "mine", "n": n, "systems": list(systems), "measure": measure, **more}
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def program(name: str = "mine", *words: str, **keys: Any) -> dict[str, Any]:
    """An entry of ``systems``: the script ``NAME.sh``."""
    return {"name": name, "command": [f"./{name}.sh", *words], **keys}


def script(folder: Path, text: str, name: str = "mine") -> None:
    path = folder / f"{name}.sh"
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)


def the_point(folder: Path, entry: Mapping[str, Any], **more: Any) -> Point:
    [point] = expand(load_study(study_of(folder, dict(entry), **more)), CPU)
    return point


def measured(point: Point, *, timed: bool = True, timeout_s: float = 120.0) -> Measurement:
    """One measurement in this process."""
    policy = Policy(samples=2, share_s=0.02)
    return Session("cpu").measure(MeasureRequest(point, 1, timed, policy, timeout_s))


def run(folder: Path, device: str = "cpu") -> RunOutcome:
    study = load_study(folder / "study.yaml")
    return run_here(study, device, folder / "run")


CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES)
def test_every_end_of_a_program_is_a_status_with_a_reason(tmp_path: Path, case: str) -> None:
    one = CASES[case]
    keys, status = one.get("keys", {}), one.get("status", "ok")
    script(tmp_path, one["script"])
    pattern = TIME if "timed" in one else ANSWER
    found = measured(the_point(tmp_path, {**program(), **pattern, **keys}))
    assert found.status == status, found.reason
    for part in one.get("said", "").split("; "):
        assert part in found.reason
    assert str(tmp_path) not in found.reason
    assert (found.value_s is None) == (status != "ok")
    if status == "ok":
        assert found.answer == found.expected == "4"
        assert found.about["command"] == "./mine.sh"


def test_a_printed_time_is_the_value_and_the_process_the_total(tmp_path: Path) -> None:
    script(tmp_path, SIX + "sleep 0.02\necho time=1.5 ms")
    found = measured(the_point(tmp_path, {**program(), **TIME}))
    assert found.value_s == pytest.approx(1.5e-3)
    assert found.about["clock"] == "printed"
    assert found.phases["total"] > 0.02
    assert found.phases["kernel"] + found.phases["other"] == pytest.approx(found.phases["total"])
    found = measured(the_point(tmp_path, {**program(), **ANSWER}))
    assert (found.value_s or 0) > 0.02
    assert found.about["clock"] == "wall"
    first = measured(the_point(tmp_path, {**program(), **TIME}), timed=False)
    assert first.about["first_launch_s"] > 0.02  # what further ones are predicted to take
    assert found.phases["total"] == found.value_s


def test_a_hang_ends_with_all_its_processes(tmp_path: Path) -> None:
    script(tmp_path, "sleep 600 &\necho $! > pid\nwait")
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):  # a busy machine may stop it before it begins
        found = measured(the_point(tmp_path, {**program(), **ANSWER}), timeout_s=0.5)
    assert found.status == "timeout"
    assert "mine did not end within 0.5 s and was stopped; raise measure.timeout" in found.reason
    assert wait_gone(int(pid.read_text()))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are found in /proc")
def test_a_killed_worker_leaves_no_program_behind(tmp_path: Path) -> None:
    script(tmp_path, "echo $$ > pid\nsleep 600")
    point = the_point(tmp_path, {**program(), **ANSWER})
    worker = WorkerProcess("cpu")
    worker.send(MeasureRequest(point, 1, True, Policy(), 600.0))
    file = tmp_path / "pid"
    assert wait_until(lambda: file.exists() and file.read_text().strip())
    worker.kill()
    assert wait_gone(int(file.read_text()))


def test_levels_and_environment_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "of-a-worker")
    monkeypatch.setenv(CALLER_PATH, "of-the-user")
    script(tmp_path, 'echo "$@" $DEPTH $PYTHONPATH $(basename $PWD) >&2\necho 4')
    entry = program("mine", "{n}", "a{depth}", "{{n}}", env={"DEPTH": "{depth}"}, **ANSWER)
    point = the_point(tmp_path, entry, fixed={"depth": 3, "block_size": 32})
    assert point.program is not None
    assert point.program.command == ("./mine.sh", "6", "a3", "{n}")
    used = {name: level for name, level in point.factors.items() if level != "-"}
    assert used == {"n": 6, "depth": 3}
    script(tmp_path, 'echo "$@" $DEPTH $PYTHONPATH $(basename "$PWD") >&2\nexit 1')
    assert measured(point).reason.endswith(f"6 a3 {{n}} 3 of-the-user {tmp_path.name}")


def test_a_rebuilt_program_is_measured_again_and_nothing_else(tmp_path: Path) -> None:
    for name in ("mine", "other"):
        script(tmp_path, SIX, name)
    (tmp_path / "lib.txt").write_text("1")
    (tmp_path / "input.txt").write_text("1")
    study_of(
        tmp_path,
        program("mine", "input.txt", depends=["lib.txt"], **ANSWER),
        program("other", **ANSWER),
    )
    assert run(tmp_path).counts == {"ok": 2}
    seen = len(read_records(tmp_path / "run").records)
    assert run(tmp_path).unchanged
    for change in (
        lambda: script(tmp_path, "true\n" + SIX),
        lambda: (tmp_path / "lib.txt").write_text("2"),
        lambda: (tmp_path / "input.txt").write_text("2"),
    ):
        change()
        assert run(tmp_path).counts == {"ok": 2}
        records = read_records(tmp_path / "run").records
        assert {r.point["system"] for r in records[seen:]} == {"mine"}
        assert [r.round for r in records[seen:]] == [0, 1, 2]
        assert len({r.about["program_sha256"] for r in records if r.round == 0}) > 1
        seen = len(records)
    manifest = read_manifest(tmp_path / "run")
    assert str(tmp_path) not in str(manifest["points"])
    assert manifest["points"][0]["program"]["command"] == ["./mine.sh", "input.txt"]


def test_a_program_on_the_gpu_is_a_system_of_the_gpu(tmp_path: Path) -> None:
    script(tmp_path, SIX)
    entry = program(device="gpu", **ANSWER)
    study = load_study(study_of(tmp_path, entry, "cpu.somers"))
    [skipped, _] = expand(study, CpuDevice().facts)
    assert "mine computes on a GPU (device: gpu)" in skipped.skip
    assert run(tmp_path, "fake").counts == {"ok": 2}
    timed = load(tmp_path / "run").query("round > 0").groupby("system")
    assert set(timed.get_group("mine")["device"]) == {"fake"}
    assert (timed.get_group("mine")["sm_mhz"] > 0).all()
    assert set(timed.get_group("cpu.somers")["device"]) == {"cpu"}
    assert os.environ.get(CALLER_PATH) is None


def test_programs_alone_have_the_factors_that_the_study_gives(tmp_path: Path) -> None:
    script(tmp_path, 'echo "$@"')
    entry = program("mine", "{word}", "{count}", answer="^[ab] ([0-9]+)")
    report = [{"figure": "line", "x": "count", "series": "word"}]
    matrix = {"word": ["a", "b"], "count": [1, 2]}
    study_of(tmp_path, entry, workload="programs", n=1, matrix=matrix, report=report)
    assert run(tmp_path).counts == {"unchecked": 4}
    table = load(tmp_path / "run").query("round > 0")
    assert {*zip(table["word"], table["count"], table["answer"], strict=True)} == {
        (word, count, str(count)) for word in "ab" for count in (1, 2)
    }
    with pytest.raises(StudyError, match="list programs under `systems`"):
        expand(load_study({"name": "s", "workload": "programs", "n": 1, "fixed": {"x": 1}}), CPU)


def test_points_that_differ_in_what_a_program_does_not_take_are_one(tmp_path: Path) -> None:
    systems = ["zhang2011.low_divergence", program("mine", "{n}", **ANSWER)]
    path = study_of(tmp_path, *systems, matrix={"block_size": [32, 64]}, n=[8, 9])
    points = expand(load_study(path), facts_for("sim:mini"))
    assert [(p.system, p.n) for p in points if p.program] == [("mine", 8), ("mine", 9)]
    assert len(points) == 6
    shown = call("run", str(path), "--device", "sim:mini", "--dry-run")
    assert shown.code == 0
    assert "./mine.sh 8" in shown.out


@pytest.mark.parametrize(("printed", "taken"), [("0.5", 0.5), ("1.005", 1.005), ("1.5", None)])
def test_a_program_cannot_take_longer_than_it_ran(printed: str, taken: float | None) -> None:
    """But for a clock's tick."""
    program = Executable(("./p",), time=r"time=(\S+)", unit="s")
    ran = Ran(f"time={printed}\n", "", wall_s=1.0)
    if taken is None:
        with pytest.raises(ProgramFault, match=r"took 1.5 s, but it ran for 1 s"):
            _seconds("p", program, ran)
    else:
        assert _seconds("p", program, ran) == taken
