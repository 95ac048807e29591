"""Real worker processes that crash, hang, print, and are killed; the pool continues."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nqbench.errors import DeviceUnavailable
from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import Job, Reply, WorkerPool
from nqbench.point import Point
from tests.measure.toy import point

FAKE = "fake:crash=9,hang=10,fatal=11,fail=12"


def job(where: Point, *, timed: bool = False, limit_s: float = 20.0, round_: int = 0) -> Job:
    """A request for one measurement."""
    policy = Policy(samples=3, share_s=0.2, target=0.5)
    request = MeasureRequest(where, round_, timed, policy, timeout_s=limit_s)
    return Job(request, limit_s, where)


def outcomes(pool: WorkerPool, jobs: Sequence[Job]) -> list[tuple[int, Reply]]:
    """(n, reply) of every job, in the order they came back."""
    return [(done.tag.n, reply) for done, reply in pool.run(jobs)]


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    """One worker on the test device."""
    with closing(WorkerPool(FAKE)) as made:
        yield made


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within some seconds."""
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_a_crash_costs_the_point_in_flight_and_no_other(pool: WorkerPool) -> None:
    found = outcomes(pool, [job(point(n)) for n in (7, 8, 9, 6, 5)])
    assert [(n, r.measurement.status) for n, r in found] == [
        (7, "ok"),
        (8, "ok"),
        (9, "crashed"),
        (6, "ok"),
        (5, "ok"),
    ]
    assert "SIGKILL" in found[2][1].measurement.reason
    pids = [reply.worker for _, reply in found]
    assert pids[0] == pids[1] == pids[2] != pids[3] == pids[4]


def test_a_hang_ends_at_its_limit_and_the_rest_continues(pool: WorkerPool) -> None:
    started = time.monotonic()
    found = outcomes(pool, [job(point(10), limit_s=0.5), job(point(6))])
    assert [r.measurement.status for _, r in found] == ["timeout", "ok"]
    assert "longer than 0.5 s" in found[0][1].measurement.reason
    assert time.monotonic() - started < 8
    assert wait_gone(found[0][1].worker)


def test_a_fatal_launch_error_replaces_the_worker_another_does_not(pool: WorkerPool) -> None:
    found = outcomes(pool, [job(point(n)) for n in (12, 6, 11, 7)])
    assert [r.measurement.status for _, r in found] == ["launch_error", "ok", "launch_error", "ok"]
    pids = [reply.worker for _, reply in found]
    assert pids[0] == pids[1] == pids[2] != pids[3]
    assert "illegal address" in found[2][1].measurement.reason


def test_prints_exits_and_mistakes_in_host_plans(pool: WorkerPool) -> None:
    jobs = [
        job(point(5, system="cpu.chatty"), timed=True, round_=1),
        job(point(13, system="cpu.quits")),
        job(point(5, system="cpu.fails")),
    ]
    chatty, quits, fails = (reply.measurement for _, reply in outcomes(pool, jobs))
    assert (chatty.status, chatty.answer, chatty.device) == ("ok", "32", "cpu")
    assert len(chatty.samples_s) >= 1
    assert quits.status == fails.status == "crashed"
    assert "exit code 3; it said: no more paper" in quits.reason
    place = r"tests/measure/toy\.py:\d+ \(fails\)"
    sentence = (
        rf"unexpected ZeroDivisionError in {place}: a mistake in the host plan \(a mistake in"
    )
    assert re.match(sentence, fails.reason), fails.reason
    assert "exit code" not in fails.reason


def test_a_worker_killed_while_idle_costs_nothing(pool: WorkerPool) -> None:
    [(_, first)] = outcomes(pool, [job(point(6))])
    os.kill(first.worker, signal.SIGKILL)
    assert wait_gone(first.worker)
    [(_, second)] = outcomes(pool, [job(point(7))])
    assert second.measurement.status == "ok"
    assert second.worker != first.worker


def test_several_workers_share_the_jobs_and_one_crash_is_one_crash() -> None:
    with closing(WorkerPool(FAKE, 2)) as pool:
        sizes = [*range(1, 9), *range(1, 9), *range(1, 9), 9]
        found = outcomes(pool, [job(point(n)) for n in sizes])
    assert sorted(n for n, _ in found) == sorted(sizes)
    assert [n for n, r in found if r.measurement.status != "ok"] == [9]
    assert len({reply.worker for _, reply in found}) == 2


def test_leaving_early_leaves_no_worker_behind() -> None:
    pool = WorkerPool(FAKE, 2)
    running = pool.run([job(point(6)), job(point(10), limit_s=60), job(point(10), limit_s=60)])
    _, reply = next(running)
    pids = {reply.worker} | {s.worker.pid for s in pool._slots if s.worker}
    pool.close()
    assert all(wait_gone(pid) for pid in pids)


def test_a_device_that_is_not_here_is_said_in_the_runner() -> None:
    with pytest.raises(DeviceUnavailable, match="no parameter 'colour'"):
        WorkerPool("fake:colour=1")


ORPHAN = """
import sys
from contextlib import closing
from tests.measure.test_pool import FAKE, job
from tests.measure.toy import point
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import WorkerPool
pool = WorkerPool(FAKE)
sys.stdout.write(f"{pool.hello.pid}\\n"); sys.stdout.flush()
print(list(pool.run([job(point(10), limit_s=100)])))
"""


def test_a_worker_does_not_outlive_a_killed_runner() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        worker = int(runner.stdout.readline())
        time.sleep(0.3)  # let it begin the launch that hangs
        assert alive(worker)
        runner.kill()
    assert wait_gone(worker)


def test_a_file_in_the_working_directory_does_not_stand_in_for_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    with closing(WorkerPool("fake")) as pool:
        assert [r.measurement.status for _, r in outcomes(pool, [job(point(6))])] == ["ok"]


def test_a_worker_ends_when_its_input_closes() -> None:
    command = [sys.executable, "-m", "nqbench.measure.worker.main"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as worker:
        assert worker.stdin is not None
        worker.stdin.close()
        assert worker.wait(10) == 0
