"""Real worker processes that crash, hang, print, and are killed; the pool continues."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nqbench.measure.sampling import Policy
from nqbench.measure.worker.messages import MeasureRequest
from nqbench.measure.worker.pool import Job, Reply, WorkerPool
from nqbench.point import Point
from tests.measure.toy import STARTED, point

FAKE = "fake:crash=9,hang=10,fatal=11,fail=12"
LIMIT_S = 3600.0
"""For what must happen: longer than pytest lets a test take."""


def job(
    where: Point, *, timed: bool = False, limit_s: float = LIMIT_S, round_: int = 0, **more: Any
) -> Job:
    """A request for one measurement."""
    policy = Policy(samples=3, share_s=0.2, target=0.5)
    request = MeasureRequest(where, round_, timed, policy, timeout_s=limit_s)
    return Job(request, limit_s, where, **more)


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
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], object]) -> bool:
    """Wait for a condition, for as long as pytest lets a test take."""
    while not condition():
        time.sleep(0.02)
    return True


def wait_gone(pid: int) -> bool:
    """Whether a process ends."""
    return wait_until(lambda: not alive(pid))


def test_a_job_is_given_up_at_its_end(pool: WorkerPool) -> None:
    """Whether the worker hangs in a launch or has not begun."""
    late = job(point(10), end=time.monotonic() + 0.5, late="no time is left")
    [(_, reply)] = outcomes(pool, [late])
    assert (reply.measurement.status, reply.measurement.reason) == ("skipped", "no time is left")
    assert wait_gone(reply.worker)


def test_prints_and_mistakes_in_host_plans(pool: WorkerPool) -> None:
    jobs = [
        job(point(5, system="cpu.chatty"), timed=True, round_=1),
        job(point(5, system="cpu.fails")),
    ]
    chatty, fails = (reply.measurement for _, reply in outcomes(pool, jobs))
    assert (chatty.status, chatty.answer, chatty.device) == ("ok", "32", "cpu")
    assert len(chatty.samples_s) >= 1
    assert fails.status == "crashed"
    place = r"tests/measure/toy\.py:\d+ \(fails\)"
    sentence = (
        rf"unexpected ZeroDivisionError in {place}: a mistake in the host plan \(a mistake in"
    )
    assert re.match(sentence, fails.reason), fails.reason
    assert "exit code" not in fails.reason


def test_workers_killed_idle_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a file in the working directory that is called like a library."""
    (tmp_path / "queue.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    with closing(WorkerPool(FAKE)) as pool:
        [(_, first)] = outcomes(pool, [job(point(6))])
        os.kill(first.worker, signal.SIGKILL)
        assert wait_gone(first.worker)
        [(_, second)] = outcomes(pool, [job(point(7))])
    assert first.measurement.status == second.measurement.status == "ok"
    assert second.worker != first.worker


def test_several_workers_share_the_jobs_and_leaving_early_leaves_none_behind() -> None:
    pool = WorkerPool(FAKE, 2)
    # One hangs at the end of the first half: the other does the rest.
    running = pool.run([job(point(n)) for n in (6, 10, 1, 2, 3, 9, 4, 10)])
    found = [next(running) for _ in range(6)]
    assert sorted(done.tag.n for done, _ in found) == [1, 2, 3, 4, 6, 9]
    assert [done.tag.n for done, r in found if r.measurement.status != "ok"] == [9]
    pids = {reply.worker for _, reply in found} | {*pool.pids()}
    assert len(pids) >= 2
    pool.close()
    assert all(wait_gone(pid) for pid in pids)


ORPHAN = """
import sys
from tests.measure.test_pool import FAKE, job
from tests.measure.toy import point
from nqbench.measure.worker.pool import WorkerPool
pool = WorkerPool(FAKE)
sys.stdout.write(f"{pool.hello.pid}\\n"); sys.stdout.flush()
print(list(pool.run([job(point(10, system="cpu.waits"))])))
"""


def test_a_worker_does_not_outlive_a_killed_runner(tmp_path: Path) -> None:
    started = tmp_path / "started"
    variables = os.environ | {STARTED: str(started)}
    command = [sys.executable, "-c", ORPHAN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables) as runner:
        assert runner.stdout is not None
        worker = int(runner.stdout.readline())
        assert wait_until(started.exists)  # it is in the midst of a call that never ends
        assert alive(worker)
        runner.kill()
    assert wait_gone(worker)
