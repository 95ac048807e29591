"""Nsight Compute: its command line, its tables, and what becomes of them in a run."""

from __future__ import annotations

import pickle
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import pytest
import yaml

from nqbench.errors import DeviceError, StudyError
from nqbench.measure.keys import Keys
from nqbench.measure.manifest import protocol_of
from nqbench.measure.measurement import Measurement
from nqbench.measure.ncu import METRICS, PROFILE_ROUND, collect, counters_of, read_launches
from nqbench.measure.ncu import main as profile_target
from nqbench.measure.run_state import RunState, Task
from nqbench.measure.worker.messages import Done, MeasureRequest, Open, Refused
from nqbench.measure.worker.pool import Reply
from nqbench.measure.worker.session import Session
from nqbench.record import Record
from nqbench.runs.folder import RunWriter
from nqbench.runs.reading import read_records
from nqbench.study import Measure, load_study
from nqbench.vocabulary import COUNTERS, PROFILER_COUNTERS
from tests.measure.toy import point
from tests.toys import Recorder, ToyStudy, run_here

KERNEL = "nqueens<Policy<8, 3, 128, 32, (Memory)2>>(const unsigned int *, unsigned int)"
_PLACE = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
          "Block Size", "Grid Size", "Device", "CC")  # fmt: skip
_LAUNCH = ("0", "4711", "python3.11", "127.0.0.1", KERNEL, "1", "7", "(128, 1, 1)", "(2, 1, 1)",
           "0", "9.0")  # fmt: skip
VALUES = {
    "smsp__inst_executed.sum": "1,234,567",
    "smsp__thread_inst_executed.sum": "20,000,000",
    "smsp__sass_branch_targets_threads_uniform.sum": "90,000",
    "smsp__sass_branch_targets_threads_divergent.sum": "10,000",
    "smsp__inst_executed_op_shared_ld.sum": "300",
    "smsp__inst_executed_op_shared_st.sum": "200",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "330",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "n/a",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "48.5",
}

OPERATIONS = {"add": 10.0, "mul": 5.0, "fma": 20.0}


def line(cells: Sequence[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def raw_page() -> str:
    """What ``--page raw`` looks like: names, units, one line per launch, talk around it."""
    units = ("",) * len(_PLACE) + tuple("%" if "pct" in name else "inst" for name in VALUES)
    return "\n".join(
        [
            "==PROF== Connected to process 4711 (/usr/bin/python3.11)",
            '==PROF== Profiling "nqueens" - 0: 0%....50%....100% - 9 passes',
            "printed by the program, with a comma",
            "==PROF== Disconnected from process 4711",
            line((*_PLACE, *VALUES)),
            line(units),
            line((*_LAUNCH, *VALUES.values())),
            line(("1", *_LAUNCH[1:], *("7" for _ in VALUES))),  # a second launch does not count
        ]
    )


def test_the_table_becomes_counters_of_ours() -> None:
    profile = read_launches(raw_page())[0]
    assert profile.kernel == KERNEL
    assert counters_of(profile.metrics) == {
        "warp_instructions": 1_234_567,
        "thread_instructions": 20_000_000,
        "lane_efficiency": pytest.approx(20_000_000 / (32 * 1_234_567)),
        "branches": 100_000,
        "divergent_branches": 10_000,
        "divergent_branch_percent": 10,
        "shared_requests": 500,  # but no shared_passes: one half of them is not available
        "achieved_occupancy": 0.485,
    }


def test_rates_and_ratios_follow_from_the_metrics() -> None:
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"
    operations = "smsp__sass_thread_inst_executed_op"
    found = counters_of(
        {
            "gpu__time_duration.sum": 2000.0,
            "smsp__inst_executed.sum": 100.0,
            "smsp__inst_issued.sum": 152.0,
            **{f"{operations}_f{o}_pred_on.sum": n for o, n in OPERATIONS.items()},
            "dram__bytes_read.sum": 4096.0,
            "dram__bytes_write.sum": 1024.0,
            f"{sectors}.sum": 200.0,
            f"{sectors}_lookup_miss.sum": 50.0,
        }
    )
    wanted = {
        "replay_overhead_percent": 52,
        "fp32_operations": 10 + 5 + 2 * 20,
        "fp32_operations_per_s": 55 / 2e-6,
        "dram_bytes": 5120,
        "dram_read_bytes_per_s": 4096 / 2e-6,
        "dram_write_bytes_per_s": 1024 / 2e-6,
        "global_load_hit_percent": 75,
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)
    everything = dict.fromkeys((part for parts in METRICS.values() for part in parts), 1.0)
    known = {*COUNTERS, *PROFILER_COUNTERS}
    assert {*METRICS, *counters_of(everything)} <= known
    assert {*PROFILER_COUNTERS} <= {*counters_of(everything)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "printed no table; it said: nothing"),
        ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission", "ERR_NVGPUCTRPERM"),
        (line((*_PLACE, *VALUES)), "saw no launch"),
        ("==WARNING== No kernels were profiled.", "No kernels were profiled"),
    ],
)
def test_no_table_is_an_error_that_tells_what_was_said(text: str, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        read_launches(text)[0]


Run = Callable[[Sequence[str], float], CompletedProcess[str]]


class Pretended:
    """A profiler that runs nothing and answers what it is told to."""

    def __init__(self, text: str, reply: dict[str, Any] | None = None, code: int = 0) -> None:
        self.text, self.code = text, code
        self.reply = Measurement(**({"answer": "256"} | (reply or {})))
        self.commands: list[list[str]] = []
        self.requests: list[MeasureRequest] = []

    def __call__(self, argv: Sequence[str], limit_s: float) -> CompletedProcess[str]:
        self.commands.append(list(argv))
        *_, request, reply = argv
        _, asked = pickle.loads(Path(request).read_bytes())
        self.requests.append(asked)
        Path(reply).write_bytes(pickle.dumps(Done(self.reply)))
        Path(argv[argv.index("--log-file") + 1]).write_text(self.text, encoding="utf-8")
        return CompletedProcess(argv, self.code, "")


class ProfiledRun:
    """A run on a pretended GPU in which some points are verified."""

    def __init__(
        self,
        out: Path,
        *sizes: int,
        unverified: int | None = None,
        resources: dict[str, int] | None = None,
    ) -> None:
        hello = replace(Session("fake").hello(), spec="cuda:0")
        keys = Keys(hello, protocol_of(ToyStudy([])))
        self.out = out
        points = [point(n) for n in sizes]
        self.listener = Recorder()
        self.tasks = [Task.of(p, keys.of(p), hello) for p in points]
        self.writer = RunWriter(out)
        self.state = RunState(self.writer, (), self.tasks, self.listener)
        for task in self.tasks:
            if task.point.n != unverified:
                found = Measurement(about={"first_launch_s": 0.5}, resources=resources or {})
                reply = Reply(found, 1)
                self.state.add(task, 0, 0, reply)

    def collect(self, run: Run | None, program: str = "/opt/ncu", **more: Any) -> None:
        started = mock.patch("nqbench.measure.ncu.run_profiler", run) if run else nullcontext()
        with started:
            collect(self.tasks, self.state, self.listener, program=program, **more)

    def profiled(self, run: Run | None, **more: Any) -> Record:
        """The last record after one more profile; nothing can be added to the run then."""
        self.collect(run, **more)
        self.writer.close()
        return read_records(self.out).records[-1]


def test_every_verified_point_of_the_sweeps_asked_for_gets_one_profile(tmp_path: Path) -> None:
    run = ProfiledRun(tmp_path, 8, 9, 10, unverified=9)
    ncu = Pretended(raw_page(), {"about": {"first_launch_s": 30.0, "jobs": 1}})
    run.collect(ncu, sweeps=("another",))
    assert not ncu.requests
    run.collect(ncu, sweeps=("sizes",))
    run.profiled(ncu)  # nothing is left to do
    found = [r for r in read_records(tmp_path).records if r.round == PROFILE_ROUND]
    assert [r.point["factors"]["n"] for r in found] == [8, 10]
    for record in found:
        assert (record.status, record.ended_by, record.value_s) == ("ok", "ncu", None)
        assert record.counters["divergent_branch_percent"] == 10
        assert record.about == {"jobs": 1, "profiler": "ncu", "profiled_kernel": KERNEL}
    assert [request.point.n for request in ncu.requests] == [8, 10]
    assert not ncu.requests[0].timed
    argv = ncu.commands[0]
    pairs = dict(pairwise(argv))
    assert (argv[0], pairs["-m"]) == ("/opt/ncu", "nqbench.measure.ncu")
    assert (pairs["--clock-control"], pairs["--launch-count"]) == ("none", "1")
    assert "--csv" in argv
    assert set(VALUES) <= set(pairs["--metrics"].split(","))


OF_TWO_KERNELS = {"registers": 24, "registers@move": 24, "registers@apply": 16, "occupancy@move": 1}


def test_several_launches_have_counters_of_each_kernel(tmp_path: Path) -> None:
    run = ProfiledRun(tmp_path, 8, resources=OF_TWO_KERNELS)
    ncu = Pretended(raw_page(), {"about": {"profiled": "apply move"}})
    record = run.profiled(ncu)
    (argv,) = ncu.commands
    assert dict(pairwise(argv))["--profile-from-start"] == "off"
    assert "--launch-count" not in argv
    assert ncu.requests[0].profiled
    assert [r.round for r in read_records(tmp_path).records] == [0, PROFILE_ROUND]
    # The pretended launches: the one of "apply" as in VALUES, then one of "move" with 7 everywhere.
    assert record.counters["warp_instructions@apply"] == 1_234_567
    assert record.counters["warp_instructions@move"] == record.counters["warp_instructions"] == 7
    assert record.counters["achieved_occupancy@apply"] == 0.485
    assert record.about["profiled"] == "apply move"
    assert record.about["profiled_kernel"] == f"{KERNEL}; {KERNEL}"


def test_a_kernel_whose_input_another_makes_is_profiled_alone(tmp_path: Path) -> None:
    run, ncu = ProfiledRun(tmp_path, 8, resources={"registers@prepare": 16}), Pretended(raw_page())
    assert run.profiled(ncu).counters["warp_instructions"] == 1_234_567
    assert ncu.requests[0].profiled


def test_a_metric_that_this_gpu_lacks_is_left_out(tmp_path: Path) -> None:
    lacking = "smsp__inst_executed_op_local_ld.sum"
    good = Pretended(raw_page())

    def ncu(argv: Sequence[str], limit_s: float) -> CompletedProcess[str]:
        ended = good(argv, limit_s)
        if lacking in argv[argv.index("--metrics") + 1]:
            return CompletedProcess(argv, 1, f"==ERROR== Failed to find metric {lacking}\n")
        return ended

    assert ProfiledRun(tmp_path, 8).profiled(ncu).status == "ok"
    assert len(good.commands) == 2


@pytest.mark.parametrize(
    ("resources", "ncu", "said"),
    [
        ({}, Pretended("==ERROR== The application crashed", code=9), "The application crashed"),
        ({}, Pretended(raw_page(), {"status": "wrong", "reason": "it is 7"}), "it is 7"),
        (OF_TWO_KERNELS, Pretended(raw_page(), {"about": {"profiled": "move"}}),
         r"ncu saw 2 launches .* marked 1 \(move\)"),
        ({}, None, "cannot be started"),
    ],
    ids=["crashed", "wrong", "another number of launches", "no program"],
)  # fmt: skip
def test_a_point_that_cannot_be_profiled_keeps_what_it_has(
    tmp_path: Path, resources: dict[str, int], ncu: Pretended | None, said: str
) -> None:
    program = tmp_path / "ncu"
    program.write_text("no program\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    run = ProfiledRun(tmp_path / "run", 8, resources=resources)
    last = run.profiled(ncu, program=str(program))
    assert (last.round, last.status) == (PROFILE_ROUND, "skipped")
    assert re.search(said, last.reason)
    assert all(run.state.done(task, 0) for task in run.tasks)


@pytest.mark.parametrize(
    ("program", "text", "tried", "said"),
    [
        ("", "", 0, "skipped, ncu is not on the PATH; install NVIDIA Nsight Compute"),
        ("ncu", "==ERROR== ERR_NVGPUCTRPERM - no permission", 1,
         "skipped, the driver lets only adm"),
    ],
)  # fmt: skip
def test_one_sentence_says_why_there_are_no_profiles_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, text: str, tried: int, said: str
) -> None:
    monkeypatch.setattr("nqbench.measure.ncu.shutil.which", lambda name: None)
    run, ncu = ProfiledRun(tmp_path, 8, 9), Pretended(text, code=1)
    run.collect(ncu, program=program)
    run.writer.close()
    (message,) = run.listener.messages
    assert f"counters: {said}" in message
    assert "\n" not in message
    assert len(ncu.commands) == tried


@pytest.mark.parametrize(  # the second counts by itself
    ("device", "said"),
    [("fake", ["counters: skipped, ncu needs a GPU"]), ("fake:deterministic=1", [])],
)
def test_a_study_that_asks_says_why_not(tmp_path: Path, device: str, said: list[str]) -> None:
    study = ToyStudy([point(8)], Measure(rounds=1, samples=5, budget_s=1.0, counters="ncu"))
    listener = Recorder()
    run_here(study, device, tmp_path, listener=listener)
    assert [m for m in listener.messages if m.startswith("counters:")] == said


def test_what_the_profiler_watches_is_one_checked_launch(tmp_path: Path) -> None:
    request, reply = tmp_path / "request.json", tmp_path / "reply.json"
    ncu = Pretended(raw_page())
    ProfiledRun(tmp_path / "run", 8).profiled(ncu)
    (asked,) = ncu.requests
    request.write_bytes(pickle.dumps((Open("fake"), asked)))
    profile_target(str(request), str(reply))
    done = pickle.loads(reply.read_bytes())
    assert isinstance(done, Done)
    found = done.measurement
    assert (found.status, found.answer, found.value_s) == ("ok", "256", None)
    request.write_bytes(pickle.dumps((Open("cuda:99"), asked)))
    profile_target(str(request), str(reply))
    refused = pickle.loads(reply.read_bytes())
    assert isinstance(refused, Refused)
    assert refused.error == "DeviceUnavailable"
    assert refused.reason


@pytest.mark.parametrize(
    ("measure", "complaint"),
    [
        ("{counters: ncu, counted: [second]}", ""),
        ("{counters: ncu, counted: [fast]}", "there is no sweep 'fast'; did you mean 'first'?"),
        ("{counters: ncu, counted: first}",
         "'counted' takes a list of entries (lines that begin with '- '), not 'first'"),
        ("{counters: ncu, counted: []}", "'counted' is empty"),
        ("{counted: [first]}", "'counted' needs a counter"),
        ("{long: [fast]}", "there is no sweep 'fast'; did you mean 'first'?"),
    ],
)  # fmt: skip
def test_the_study_file_takes_it_and_checks_the_sweeps(measure: str, complaint: str) -> None:
    """Counters leave the protocol, and so the keys, alone."""
    sweeps = [{"name": n, "system": "zhang2011.low_divergence"} for n in ("first", "second")]
    data = {"name": "s", "n": [8], "sweeps": sweeps, "measure": yaml.safe_load(measure)}
    if complaint:
        with pytest.raises(StudyError, match=re.escape(complaint)):
            load_study(data)
        return
    study = load_study(data)
    assert (study.measure.counters, study.measure.counted) == ("ncu", ("second",))
    assert protocol_of(study) == protocol_of(replace(study, measure=Measure()))
