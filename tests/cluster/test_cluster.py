"""Runs on a cluster: the same records as without one, whatever happens to its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from nqbench.cluster.connect import (
    Way,
    WorkerPart,
    connected,
    local,
)
from nqbench.cluster.host import Offer
from nqbench.cluster.places import Cluster, ClusterSite
from nqbench.measure.events import RunOutcome
from nqbench.measure.lanes import Request, run_on_site
from nqbench.measure.runner import run_study
from nqbench.point import Point
from nqbench.runs.reading import read_manifest, read_records
from nqbench.study import Measure, expand, load_study
from tests.cli.call import ROOT
from tests.cluster import toy
from tests.measure.toy import Recorder, ToyStudy

QUICK = ROOT / "configs" / "quick.yaml"
TIMES = ("started", "wall_s", "spent_s", "worker")
"""What may differ between two runs of deterministic points: times, and the process."""
GPUS = tuple(f"fake:seed={i},noise=0.003" for i in range(3))
TIMED = Measure(rounds=2, samples=5, budget_s=1.0)


def part(number: int) -> WorkerPart:
    """A worker with one core, its CPU, and a test device of its own: three GPUs of one model."""
    gpu = Offer(GPUS[number], "fake", "fake device (test)", "", f"nqbench-fake-{number}")
    cpu = Offer("cpu", "cpu", "cpu", "", "nqbench-cpu-test")
    return WorkerPart((gpu, cpu) if number == 0 else (gpu,), 1)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The scheduler of a local cluster of three worker processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(toy.NAP, "0.02")
        cluster = local([part(number) for number in range(3)])
    with cluster:
        yield cluster.scheduler_address


@pytest.fixture
def cluster(address: str) -> Iterator[Cluster]:
    """A connection with all three workers there."""
    notes: list[str] = []
    with connected(Way(scheduler=address), notes.append) as found:
        wait_until(lambda: len(found.look()) == 3)
        found.notes = notes  # type: ignore[attr-defined]
        yield found


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class Meddler(Recorder):
    """A listener that does something once after so many records."""

    def __init__(self, after: int = 0, act: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.after, self.act = after, act

    def device(self, name: str) -> Meddler:
        return self

    def advanced(self, record: Any = None) -> None:
        super().advanced(record)
        if len(self.records) == self.after:
            self.act()


def on(
    cluster: Cluster,
    wanted: str,
    out: Path,
    points: Sequence[Point],
    how: Measure = TIMED,
    listener: Meddler | None = None,
) -> RunOutcome:
    """Run a toy study on the cluster."""
    study = ToyStudy(points, how)
    request = Request(study, lambda _: out, study.expand)
    (outcome,) = run_on_site(request, ClusterSite(cluster, wanted), listener or Meddler())
    return outcome


def without(out: Path, points: Sequence[Point]) -> None:
    """The same study in this process."""
    study = ToyStudy(points, TIMED)
    run_study(study, toy.DEVICE, out, isolate=False, expand=study.expand)


def lines(path: Path) -> list[str]:
    """The records of a run without what may differ, in order of their keys."""
    found = [record.as_json() for record in read_records(path).records]
    for record in found:
        for name in TIMES:
            del record[name]
        record["about"].pop("simulation_s", None)
    return sorted(json.dumps(record) for record in found)


def test_a_simulated_study_gives_the_same_records_as_without_a_cluster(
    cluster: Cluster, tmp_path: Path
) -> None:
    study = load_study(QUICK)
    request = Request(study, lambda _: tmp_path / "cluster", expand)
    (outcome,) = run_on_site(request, ClusterSite(cluster, "sim:mini"), Meddler())
    run_study(study, "sim:mini", tmp_path / "plain", expand=expand, isolate=False)
    assert outcome.counts == {"ok": 16}
    assert lines(tmp_path / "cluster") == lines(tmp_path / "plain")
    ours, plain = (read_manifest(tmp_path / name) for name in ("cluster", "plain"))
    assert {n for n in ours if ours[n] != plain[n]} <= {"created", "seed", "history"}
    processes = {r.worker for r in read_records(tmp_path / "cluster").records}
    assert len(processes) == 3


def test_lost_late_and_lying_workers_change_no_record(
    cluster: Cluster, address: str, tmp_path: Path
) -> None:
    points = toy.points(40)
    victim = next(iter(cluster.look()))
    pid = cluster.client.run(os.getpid, workers=[victim])[victim]
    late: list[subprocess.Popen[str]] = []

    def trouble() -> None:
        os.kill(pid, signal.SIGKILL)
        late.append(worker(address, {toy.LIES: "1", toy.NAP: "0.02"}))
        wait_until(lambda: victim not in cluster.look() and len(cluster.look()) == 4)

    listener = Meddler(5, trouble)
    seen = addresses(cluster)
    try:
        outcome = on(cluster, toy.DEVICE, tmp_path / "cluster", points, listener=listener)
    finally:
        ends = [process.communicate(timeout=30) for process in late if stop(process)]
    without(tmp_path / "plain", points)
    assert outcome.counts == {"ok": 40}
    assert lines(tmp_path / "cluster") == lines(tmp_path / "plain")
    assert len(seen) == 5, "three workers, the one that came back, the late one"
    (note,) = cluster.notes  # type: ignore[attr-defined]
    said = "is taken out: the answer is 2049, but the known one is 2048"
    assert said in note, note
    assert ends


def worker(address: str, extra: dict[str, str]) -> subprocess.Popen[str]:
    """``nqbench worker`` for the simulator, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "nqbench", "worker", address, "--gpus", "none"],
        env={**os.environ, **extra, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop(process: subprocess.Popen[str]) -> bool:
    """Ctrl-C."""
    process.send_signal(signal.SIGINT)
    return True


def addresses(cluster: Cluster) -> set[str]:
    """Collects who answered."""
    seen: set[str] = set()
    answer = cluster.answer

    def noted(future: Any) -> Any:
        found = answer(future)
        seen.add(found.address)
        return found

    cluster.answer = noted  # type: ignore[method-assign]
    return seen


def test_each_gpu_measures_its_points_in_all_rounds_and_a_lost_ones_go_to_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.lost_s = 0.0
    pids: list[int] = []
    points = [p for n in (8, 9) for p in toy.points(6, n)]

    def lose_one() -> None:
        device = read_records(tmp_path / "r").records[-1].device
        (address,) = (a for a, m in cluster.members.items() if device in str(m.described))
        pids.extend(cluster.client.run(os.getpid, workers=[address]).values())
        os.kill(pids[0], signal.SIGKILL)

    outcome = on(cluster, "fake", tmp_path / "r", points, listener=Meddler(10, lose_one))
    assert outcome.counts == {"ok": 12}
    manifest = read_manifest(tmp_path / "r")
    keys = {point["key"] for point in manifest["points"]}
    final = [r for r in read_records(tmp_path / "r").records if r.key in keys]
    assert Counter(r.round for r in final) == {0: 12, 1: 12, 2: 12}
    assert len({(r.point["factors"]["n"], r.device) for r in final}) == 2, "compared on one GPU"
    assert len({(r.device, r.round) for r in final}) == len({r.worker for r in final}), "fresh"
    orders = [[r.point["factors"]["flavour"] for r in final if r.round == k] for k in (1, 2)]
    assert orders[0] != orders[1]
    assert len(manifest["devices"]) >= 2
    assert len(read_records(tmp_path / "r").records) > len(final), "what the lost one did is kept"
