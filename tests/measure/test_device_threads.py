"""Several devices share a study: who measures what, in which order, and who takes over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from benchmarks.in_process import InProcess
from nqbench.analysis.answer import Answer
from nqbench.analysis.data.dataset import load_dataset
from nqbench.analysis.findings import findings
from nqbench.errors import DeviceLost
from nqbench.measure.device_threads import StudyRequest, run_on_site
from nqbench.measure.run_state import RunOutcome
from nqbench.measure.worker.messages import Hello
from nqbench.measure.worker.pool import Job, Reply
from nqbench.point import Point
from nqbench.record import Record
from nqbench.runs.reading import RECORDS, current, read_manifest, read_records
from nqbench.study import Measure
from tests.measure.toy import point
from tests.toys import Recorder, ToyStudy

HOW = Measure(rounds=2, samples=5, budget_s=1.0)


@dataclass(eq=False)
class Gpu:
    """A test device as a place; it is lost after so many measurements, and begins with others."""

    number: int
    lost_after: int = 1000
    cores: int = 1
    model: str = "fake"
    done: int = 0
    begin: Barrier = field(default_factory=partial(Barrier, 1))
    hello: Hello = field(init=False)

    def __post_init__(self) -> None:
        self.spec = self.name = f"fake:seed={self.number},noise=0.003"
        self.hello = InProcess(self.spec).hello

    def __call__(self, size: int = 1) -> InProcess:
        return Losable(self)

    def compilers(self) -> InProcess:
        raise AssertionError("test devices compile nothing")


class Losable(InProcess):
    """Workers of a device that may be lost."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu.spec)
        self._gpu = gpu

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        if not self._gpu.done:
            self._gpu.begin.wait(60)
        for done in super().run(jobs):
            if self._gpu.done >= self._gpu.lost_after:
                raise DeviceLost(f"{self._gpu.name} is lost")
            self._gpu.done += 1
            yield done


@dataclass
class Host:
    """Where the devices are."""

    gpus: Sequence[Gpu]

    def devices(self) -> Sequence[Gpu]:
        return self.gpus

    def stop(self) -> None:
        pass


def run(
    out: Path, points: Sequence[Point], *gpus: Gpu, budget_s: float | None = None
) -> tuple[RunOutcome, Recorder]:
    """Measure points on these devices."""
    study, listener = ToyStudy(points, HOW), Recorder()
    request = StudyRequest(study, lambda _: study.points, lambda _: out, budget_s=budget_s)
    (outcome,) = run_on_site(request, Host(gpus), listener)
    return outcome, listener


def sizes(*ns: int, each: int = 4) -> list[Point]:
    return [point(n, flavour=f"{i:02}") for n in ns for i in range(each)]


def records(out: Path) -> tuple[Record, ...]:
    return read_records(out).records


def test_what_is_compared_stays_on_one_device_and_small_boards_come_first(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, sizes(8, 9, 10, 11), Gpu(0), Gpu(1))
    assert outcome.counts == {"ok": 16}
    assert len({(r.point["factors"]["n"], r.device) for r in records(tmp_path)}) == 4
    assert load_dataset(tmp_path).spread == []
    tried = [r.point["factors"]["n"] for r in records(tmp_path) if r.round == 0]
    assert tried == sorted(tried)
    known = read_manifest(tmp_path)
    on = {p["key"]: known["devices"][p["on"]]["spec"] for p in known["points"]}
    assert {(r.key, r.device) for r in records(tmp_path)} == {*on.items()}
    orders = [[r.point["factors"] for r in records(tmp_path) if r.round == k] for k in (1, 2)]
    assert orders[0] != orders[1]


def test_a_resumed_run_goes_on_on_the_devices_that_began(tmp_path: Path) -> None:
    points = sizes(8, 9, 10)
    run(tmp_path, points, Gpu(0), Gpu(1))
    file = tmp_path / RECORDS
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:20]))
    outcome, _ = run(tmp_path, points, Gpu(1), Gpu(0), Gpu(2))
    assert outcome.counts == {"ok": 12}
    begun = {r.key: r.device for r in records(tmp_path)[:20]}
    assert all(begun.get(r.key, r.device) == r.device for r in records(tmp_path))
    assert {*Counter((r.key, r.round) for r in records(tmp_path)).values()} == {1}


def test_finished_points_stay_with_a_device_that_is_gone(tmp_path: Path) -> None:
    points = sizes(8, 9)
    run(tmp_path, points, Gpu(0), Gpu(1))
    outcome, _ = run(tmp_path, points, Gpu(2))
    assert outcome.unchanged
    assert outcome.counts == {"ok": 8}


@pytest.mark.parametrize(("each", "pieces"), [(16, 2), (40, 3), (8, 1)])
def test_a_large_group_is_split_only_for_devices_without_one(
    each: int, pieces: int, tmp_path: Path
) -> None:
    begin = Barrier(pieces)
    outcome, _ = run(tmp_path, sizes(8, each=each), *(Gpu(i, begin=begin) for i in range(3)))
    assert outcome.counts == {"ok": each}
    assert len({r.device for r in records(tmp_path)}) == pieces
    said = findings(Answer(load_dataset(tmp_path)))
    assert any("Sweep sizes N=8 was measured on several GPUs" in s for s in said) == (pieces > 1)


@pytest.mark.parametrize("lost_after", [6, 15])  # while it verifies; in the last round of 6 points
def test_a_group_whose_device_is_lost_ends_on_one_device(lost_after: int, tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, sizes(8, each=6), Gpu(0, lost_after=lost_after), Gpu(1))
    assert outcome.counts == {"ok": 6}
    final = current(read_manifest(tmp_path), records(tmp_path))
    assert {r.device for r in final} == {Gpu(1).spec}
    assert Counter(r.round for r in final) == {0: 6, 1: 6, 2: 6}
    assert load_dataset(tmp_path).spread == []


def test_a_group_that_a_resumed_run_spreads_is_said(tmp_path: Path) -> None:
    run(tmp_path, sizes(8), Gpu(0))
    file = tmp_path / RECORDS
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:10]))
    run(tmp_path, sizes(8), Gpu(1))
    assert load_dataset(tmp_path).spread == [("sizes", 8)]


def test_a_lost_devices_points_are_measured_anew_by_another(tmp_path: Path) -> None:
    outcome, listener = run(tmp_path, sizes(8, 9), Gpu(0, lost_after=6), Gpu(1))
    assert outcome.counts == {"ok": 8}
    assert Gpu(0).name + " is lost" in listener.messages
    keys = {p["key"] for p in read_manifest(tmp_path)["points"]}
    final = [r for r in records(tmp_path) if r.key in keys]
    assert {r.device for r in final} == {Gpu(1).spec}
    assert Counter(r.round for r in final) == {0: 8, 1: 8, 2: 8}


def test_the_last_device_lost_ends_the_run_and_keeps_what_was_measured(tmp_path: Path) -> None:
    with pytest.raises(DeviceLost, match="is lost"):
        run(tmp_path, sizes(8, 9), Gpu(0, lost_after=6), Gpu(1, lost_after=6))
    assert len(records(tmp_path)) == 12
    assert run(tmp_path, sizes(8, 9), Gpu(2))[0].counts == {"ok": 8}


def test_a_budget_is_planned_for_all_points_of_a_device(tmp_path: Path) -> None:
    outcome, listener = run(tmp_path, sizes(8, 9, 10, 11), Gpu(0), Gpu(1), budget_s=60.0)
    assert outcome.counts == {"ok": 16}
    assert Counter(name for name, _ in listener.stages) == {
        "checking answers": 2,
        "timing, round 1 of 2": 2,
        "timing, round 2 of 2": 2,
    }
