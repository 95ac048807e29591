"""A study on several devices at once: each has a thread that carries out all stages.

Points that a study compares (one sweep, one size) stay on one device as far as that leaves no
device idle, because two GPUs of one model differ. A device takes a group of points, verifies them
and measures all their rounds, then takes the next; so one that joins late gets what is left, and
the points of one that is lost go to others.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from nqbench.errors import DeviceLost
from nqbench.facts import DeviceFacts
from nqbench.measure import ncu
from nqbench.measure.budget import Budget, TimeBook, nominal_cores
from nqbench.measure.run_state import Listener, RunOutcome, RunState, Task
from nqbench.measure.runner import Recording, look_first, measure
from nqbench.measure.stages import EXACT_ROUND, WorkerFactory
from nqbench.measure.worker.messages import Hello
from nqbench.point import Point
from nqbench.runs.folder import RunWriter

if TYPE_CHECKING:
    from nqbench.study.model import Study


MIN_PIECE: Final = 8
"""Fewest points for which a group is split over devices: each piece starts processes of its own,
once to verify and once per round."""
POLL_S: Final = 0.2


class DeviceSlot(WorkerFactory, Protocol):
    """A device that a run may use. It makes its own workers.

    ``name``   for people, unique: ``cuda:1 on node7``
    ``model``  devices of one model share a run folder
    ``cores``  how many measurements it simulates at a time
    """

    name: str
    model: str
    hello: Hello

    @property
    def cores(self) -> int: ...


class DeviceSite(Protocol):
    """Where the devices are. ``devices`` may grow; it raises ``DeviceLost`` if all are out of
    reach. ``stop`` makes every measurement that is under way end with ``DeviceLost``."""

    def devices(self) -> Sequence[DeviceSlot]: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class StudyRequest:
    """What is to be measured, and how: the arguments of ``run_study``.

    ``points`` makes the study's points for a device, ``out`` gives the run folder of a model.
    """

    study: Study
    points: Callable[[DeviceFacts], Sequence[Point]]
    out: Callable[[str], Path]
    fresh: bool = False
    budget_s: float | None = None
    command: Sequence[str] = ()


def run_on_site(request: StudyRequest, site: DeviceSite, listener: Listener) -> list[RunOutcome]:
    """Measure a study on every device of a site; one run, and one outcome, per model.

    Raises what ``run_study`` raises; ``DeviceLost`` if points are left and no device is.
    """
    with ExitStack() as stack:
        threads = DeviceThreads(request, site, listener, stack)
        interrupted = False
        try:
            threads.run()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            threads.stop()
        return [shared.recording.finish(interrupted) for shared in threads.runs.values()]


class DeviceThreads:
    """The threads of all devices, and the runs that they share."""

    def __init__(
        self, request: StudyRequest, site: DeviceSite, listener: Listener, stack: ExitStack
    ) -> None:
        self.runs: dict[str, SharedRun] = {}
        self._request, self._site, self._listener, self._stack = request, site, listener, stack
        self._threads: dict[str, threading.Thread] = {}
        self._faults: list[BaseException] = []
        self._lost: set[str] = set()
        self._told = 0
        self._started = time.monotonic()

    def run(self) -> None:
        """Until every point is measured, or no device is left."""
        over = False
        while True:
            devices = self._site.devices()
            self._lost &= {device.name for device in devices}  # one that comes back is welcome
            there = [device for device in devices if device.name not in self._lost]
            for device in there:
                if device.model not in self.runs:
                    self.runs[device.model] = self._open(device)
            for model, shared in self.runs.items():
                shared.present = [device.hello for device in there if device.model == model]
            for device in there:
                self._begin(device)
            running = [thread for thread in self._threads.values() if thread.is_alive()]
            for fault in self._faults:
                if not isinstance(fault, DeviceLost):
                    raise fault
            if over and not running:
                break
            over = not running  # one more look: a device may just have given its points back
            if over:
                continue
            for fault in self._faults[self._told :]:  # the run goes on without that device
                self._listener.message(str(fault))
            self._told = len(self._faults)
            running[0].join(POLL_S)
        if any(shared.waiting for shared in self.runs.values()):
            raise self._faults[-1]

    def stop(self) -> None:
        """Stop the measurements, and wait for the threads."""
        self._site.stop()
        for shared in self.runs.values():
            shared.stop()
        for thread in self._threads.values():
            thread.join()

    def _begin(self, device: DeviceSlot) -> None:
        """Start the thread of a device, unless it has one or there is nothing for it to do."""
        shared = self.runs[device.model]
        if device.name in self._threads and (
            self._threads[device.name].is_alive() or not shared.suited(device.hello)
        ):
            return
        thread = threading.Thread(
            target=self._measure, args=(device, shared), name=device.name, daemon=True
        )
        self._threads[device.name] = thread
        thread.start()

    def _open(self, device: DeviceSlot) -> SharedRun:
        asked, out = self._request, self._request.out(device.model)
        look_first(asked.study, out, asked.fresh)
        writer, hello = self._stack.enter_context(RunWriter(out)), device.hello
        how = (asked.fresh, asked.command, self._listener, self._started)
        recording = Recording(writer, asked.study, asked.points(hello.facts), hello, *how)
        if asked.study.measure.counters == ncu.PROGRAM:
            self._listener.message(
                "hardware counters are not collected over a cluster: run the study once more on the"
                " GPU's own computer, which adds them"
            )
        return SharedRun(recording, asked.budget_s is None)

    def _measure(self, device: DeviceSlot, shared: SharedRun) -> None:
        asked, recording = self._request, shared.recording
        listener = self._listener.device(device.name)
        measured, started = asked.study.measure, self._started
        budget = Budget(measured, asked.budget_s, book=shared.book, started=started)
        stages = recording.stages(budget, listener, device)
        taken: list[int] = []
        try:
            while taken := shared.take(device.hello):
                tasks = [recording.tasks[index] for index in taken]
                measure(stages, tasks, device.hello, None, device.cores, shared.turn(taken))
        except DeviceLost as lost:
            self._lost.add(device.name)
            shared.give_back(taken)
            self._faults.append(lost)
        except BaseException as fault:  # noqa: BLE001 (raised again by the thread that waits)
            self._faults.append(fault)
        finally:
            shared.leave()


class SharedRun:
    """A run whose points several devices share. ``dynamic``: not all are handed out at once."""

    def __init__(self, recording: Recording, dynamic: bool) -> None:
        self.recording = recording
        self.book = TimeBook(nominal_cores(recording.hello.facts))
        self.present: Sequence[Hello] = ()
        self._stopped = False
        self._dynamic = dynamic
        self._changed = threading.Condition()
        self._unverified: dict[int, float] = {}  # by busy thread: its smallest board, inf if none
        self.waiting = self._groups(self._keep_earlier())

    def take(self, hello: Hello) -> list[int]:
        """Points for a device that is free; none if none are left."""
        with self._changed:
            self.leave()
            idle = len(self.present) - len(self._unverified)
            while 0 < len(self.waiting) < idle and self.recording.hello.timed:
                largest = max(self.waiting, key=len)
                if len(largest) < 2 * MIN_PIECE:
                    break
                place = self.waiting.index(largest)
                self.waiting[place : place + 1] = [largest[::2], largest[1::2]]
            suited = self.suited(hello)
            if not suited:
                return []
            # A budget is planned for all points of a device at once.
            taken = suited[:1] if self._dynamic else suited[: -(-len(suited) // max(1, idle))]
            for group in taken:
                self.waiting.remove(group)
            chosen = [index for group in taken for index in group]
            self.recording.assign(chosen, hello)  # one device at a time
            self._unverified[threading.get_ident()] = self._smallest(chosen)
            return chosen

    @contextmanager
    def turn(self, taken: Sequence[int]) -> Iterator[None]:
        """Wait until the smaller boards that other devices have are verified: these launches tell
        which of the larger ones take too long for any."""
        size = self._smallest(taken)
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or all(n >= size for n in self._unverified.values())
            )
        yield
        with self._changed:
            self._unverified[threading.get_ident()] = math.inf
            self._changed.notify_all()

    def leave(self) -> None:
        """This thread's device has no points any more."""
        with self._changed:
            self._unverified.pop(threading.get_ident(), None)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _smallest(self, taken: Sequence[int]) -> int:
        return min(self.recording.points[index].n for index in taken)

    def give_back(self, points: Iterable[int]) -> None:
        """Points of a lost device wait for another: those that are unfinished, and where times are
        compared also the finished ones of the same group, so that the group ends on one device."""
        tasks, state = self.recording.tasks, self.recording.state
        rounds = self.recording.study.measure.rounds
        left = {i for i in points if not finished(tasks[i], state, rounds)}
        with self._changed:
            for group in self._groups(points):
                if self.recording.hello.timed:
                    self.waiting += [group] if left.intersection(group) else []
                elif unfinished := [i for i in group if i in left]:
                    self.waiting.append(unfinished)

    def _groups(self, indices: Iterable[int]) -> list[list[int]]:
        """Points that are compared with each other, small boards first."""
        points = self.recording.points
        groups: dict[tuple[str, int], list[int]] = {}
        for index in indices:
            groups.setdefault((points[index].sweep, points[index].n), []).append(index)
        if not self.recording.hello.timed:
            return [[i for group in groups.values() for i in group]] if groups else []
        return [groups[key] for key in sorted(groups, key=lambda key: (key[1], -len(groups[key])))]

    def suited(self, hello: Hello) -> list[list[int]]:
        """Waiting groups for a device: those that it has begun, in an earlier run, before those
        that nobody has; what another device that is here has begun is left to that one."""

        def begun(group: Sequence[int], by: Hello) -> bool:
            points = (self.recording.points[i] for i in group)
            return any(self.recording.state.has(self.recording.key(p, by)) for p in points)

        with self._changed:
            others = [other for other in self.present if other is not hello]
            return [group for group in self.waiting if begun(group, hello)] or [
                group for group in self.waiting if not any(begun(group, other) for other in others)
            ]

    def _keep_earlier(self) -> list[int]:
        """Give finished points to the devices that measured them; returns the others."""
        recording = self.recording
        left = list(range(len(recording.points)))
        rounds = recording.study.measure.rounds
        for hello in recording.earlier_devices():
            keys = {i: recording.key(recording.points[i], hello) for i in left}
            tasks = {i: Task.of(recording.points[i], key, hello) for i, key in keys.items()}
            there = [i for i in left if finished(tasks[i], recording.state, rounds)]
            recording.assign(there, hello)
            left = [i for i in left if i not in {*there}]
        return left


def finished(task: Task, state: RunState, rounds: int) -> bool:
    """Whether every measurement of a point is there."""
    wanted = (EXACT_ROUND,) if task.exact else range(1, rounds + 1)
    return bool(task.point.skip) or all(state.done(task, round_) for round_ in wanted)
