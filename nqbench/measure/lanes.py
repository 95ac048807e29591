"""A study on several devices at once: each has a lane, a thread that carries out all stages.

Points that a study compares (one sweep, one size) stay on one device as far as that leaves no
device idle, because two GPUs of one model differ. A lane takes a group of points, verifies them and
measures all their rounds, then takes the next; so a device that joins late gets what is left, and
the unfinished points of one that is lost go to others.
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
from nqbench.measure.budget import Budget
from nqbench.measure.events import Listener, RunOutcome
from nqbench.measure.forecast import TimeBook, nominal_cores
from nqbench.measure.run_state import RunState, Task
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


class Place(Protocol):
    """A device that a run may use.

    ``name``   for people, unique: ``cuda:1 on node7``
    ``model``  devices of one model share a run folder
    ``cores``  how many measurements it simulates at a time
    """

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def hello(self) -> Hello: ...
    @property
    def cores(self) -> int: ...
    @property
    def workers(self) -> WorkerFactory: ...


class Site(Protocol):
    """Where the devices are. ``places`` may grow; it raises ``DeviceLost`` if all are out of reach.
    ``stop`` makes every measurement that is under way end with ``DeviceLost``."""

    def places(self) -> Sequence[Place]: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class Request:
    """What is to be measured, and how: the arguments of ``run_study``.

    ``points`` makes the study's points for a device, ``out`` gives the run folder of a model.
    """

    study: Study
    points: Callable[[DeviceFacts], Sequence[Point]]
    out: Callable[[str], Path]
    fresh: bool = False
    budget_s: float | None = None
    command: Sequence[str] = ()


def run_on_site(request: Request, site: Site, listener: Listener) -> list[RunOutcome]:
    """Measure a study on every device of a site; one run, and one outcome, per model.

    Raises what ``run_study`` raises; ``DeviceLost`` if points are left and no device is.
    """
    with ExitStack() as stack:
        lanes = Lanes(request, site, listener, stack)
        interrupted = False
        try:
            lanes.run()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            lanes.stop()
            lanes.join()
        return [shared.recording.finish(interrupted) for shared in lanes.runs.values()]


class Lanes:
    """The threads of all devices, and the runs that they share."""

    def __init__(self, request: Request, site: Site, listener: Listener, stack: ExitStack) -> None:
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
            places = self._site.places()
            self._lost &= {place.name for place in places}  # one that comes back is welcome
            there = [place for place in places if place.name not in self._lost]
            for place in there:
                if place.model not in self.runs:
                    self.runs[place.model] = self._open(place)
            for model, shared in self.runs.items():
                shared.present = [place.hello for place in there if place.model == model]
            for place in there:
                if self._wanted(place):
                    self._begin(place)
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

    def join(self) -> None:
        """Wait for the threads, whose measurements have been stopped."""
        for thread in self._threads.values():
            thread.join()

    def _wanted(self, place: Place) -> bool:
        """Whether a device has no lane and there is something for it to do."""
        if place.name in self._threads:
            idle = not self._threads[place.name].is_alive()
            return idle and self.runs[place.model].has_for(place.hello)
        return True

    def _begin(self, place: Place) -> None:
        lane = threading.Thread(
            target=self._lane, args=(place, self.runs[place.model]), name=place.name
        )
        lane.daemon = True
        self._threads[place.name] = lane
        lane.start()

    def stop(self) -> None:
        """Let nobody wait any more."""
        self._site.stop()
        for shared in self.runs.values():
            shared.stopped = True

    def _open(self, place: Place) -> SharedRun:
        asked, out = self._request, self._request.out(place.model)
        look_first(asked.study, out, asked.fresh)
        writer = self._stack.enter_context(RunWriter(out))
        recording = Recording(
            writer,
            asked.study,
            asked.points(place.hello.facts),
            place.hello,
            asked.fresh,
            asked.command,
            self._listener,
            self._started,
        )
        if asked.study.measure.counters == ncu.PROGRAM:
            self._listener.message(
                "hardware counters are not collected over a cluster: run the study once more on the"
                " GPU's own computer, which adds them"
            )
        return SharedRun(recording, self._listener, asked.budget_s is None)

    def _lane(self, place: Place, shared: SharedRun) -> None:
        asked, recording = self._request, shared.recording
        listener = self._listener.device(place.name)
        measured, started = asked.study.measure, self._started
        budget = Budget(measured, asked.budget_s, book=shared.book, started=started)
        stages = recording.stages(budget, listener, place.workers)
        taken: list[int] = []
        try:
            while taken := shared.take(place.hello):
                tasks = recording.assign(taken, place.hello)
                shared.say_spread()
                turn = shared.turn(taken)
                measure(stages, tasks, place.hello, None, place.cores, turn)
        except DeviceLost as lost:
            self._lost.add(place.name)
            shared.give_back(taken)
            self._faults.append(lost)
        except BaseException as fault:  # noqa: BLE001 (raised again by the thread that waits)
            self._faults.append(fault)
        finally:
            shared.leave()


class SharedRun:
    """A run whose points several devices share. ``dynamic``: not all are handed out at once."""

    def __init__(self, recording: Recording, listener: Listener, dynamic: bool) -> None:
        self.recording = recording
        self.book = TimeBook(nominal_cores(recording.hello.facts))
        self.present: Sequence[Hello] = ()
        self.stopped = False
        self._listener = listener
        self._dynamic = dynamic
        self._lock = threading.Lock()
        self._unverified: dict[int, float] = {}  # by busy thread: its smallest board, inf if none
        self._spread: set[tuple[str, int]] = set()
        self.waiting = self._groups(self._keep_earlier())

    def take(self, hello: Hello) -> list[int]:
        """Points for a device that is free; none if none are left."""
        with self._lock:
            self._unverified.pop(threading.get_ident(), None)
            self._make_pieces()
            suited = self._suited(hello)
            if not suited:
                return []
            idle = max(1, self._idle())
            # A budget is planned for all points of a device at once.
            taken = suited[:1] if self._dynamic else suited[: -(-len(suited) // idle)]
            for group in taken:
                self.waiting.remove(group)
            chosen = [index for group in taken for index in group]
            self._unverified[threading.get_ident()] = self._size(chosen)
            return chosen

    def has_for(self, hello: Hello) -> bool:
        """Whether a device has something to do."""
        with self._lock:
            return bool(self._suited(hello))

    @contextmanager
    def turn(self, taken: Sequence[int]) -> Iterator[None]:
        """Wait until the smaller boards that other devices have are verified: these launches tell
        which of the larger ones take too long for any."""
        size = self._size(taken)
        while any(other < size for other in [*self._unverified.values()]) and not self.stopped:
            time.sleep(POLL_S / 4)
        yield
        self._unverified[threading.get_ident()] = math.inf

    def leave(self) -> None:
        """This thread's device takes no more."""
        with self._lock:
            self._unverified.pop(threading.get_ident(), None)

    def _idle(self) -> int:
        return len(self.present) - len(self._unverified)

    def _size(self, taken: Sequence[int]) -> int:
        return min(self.recording.points[index].n for index in taken)

    def give_back(self, points: Iterable[int]) -> None:
        """Points of a lost device wait for another: those that are unfinished, and where times are
        compared also the finished ones of the same group, so that the group ends on one device."""
        tasks, state = self.recording.tasks, self.recording.state
        rounds = self.recording.study.measure.rounds
        left = {i for i in points if not finished(tasks[i], state, rounds)}
        with self._lock:
            for group in self._groups(points):
                if self.recording.hello.timed:
                    self.waiting += [group] if left.intersection(group) else []
                elif unfinished := [i for i in group if i in left]:
                    self.waiting.append(unfinished)

    def _make_pieces(self) -> None:
        """Split the largest group while there are fewer than devices without one."""
        while 0 < len(self.waiting) < self._idle() and self.recording.hello.timed:
            largest = max(self.waiting, key=len)
            if len(largest) < 2 * MIN_PIECE:
                return
            place = self.waiting.index(largest)
            self.waiting[place : place + 1] = [largest[::2], largest[1::2]]

    def say_spread(self) -> None:
        """Say once which compared points are on several devices, for whatever reason."""
        recording = self.recording
        if not recording.hello.timed:
            return
        with self._lock:
            waiting = {index for group in self.waiting for index in group}
            owners: dict[tuple[str, int], set[str]] = {}
            for index, point in enumerate(recording.points):
                if index not in waiting:
                    owners.setdefault((point.sweep, point.n), set()).add(recording.owner(index))
            for sweep, n in {group for group, names in owners.items() if len(names) > 1}:
                if (sweep, n) not in self._spread:
                    self._spread.add((sweep, n))
                    self._listener.message(
                        f"sweep {sweep} N={n} is spread over several GPUs: comparisons within it"
                        " include how these GPUs differ"
                    )

    def _groups(self, indices: Iterable[int]) -> list[list[int]]:
        """Points that are compared with each other, small boards first."""
        points = self.recording.points
        groups: dict[tuple[str, int], list[int]] = {}
        for index in indices:
            groups.setdefault((points[index].sweep, points[index].n), []).append(index)
        if not self.recording.hello.timed:
            return [[i for group in groups.values() for i in group]] if groups else []
        return [groups[key] for key in sorted(groups, key=lambda key: (key[1], -len(groups[key])))]

    def _suited(self, hello: Hello) -> list[list[int]]:
        """Waiting groups for a device: those that it has begun, in an earlier run, before those
        that nobody has; what another device that is here has begun is left to that one."""
        others = [other for other in self.present if other is not hello]
        own = [group for group in self.waiting if self._begun(group, hello)]
        return own or [
            group
            for group in self.waiting
            if not any(self._begun(group, other) for other in others)
        ]

    def _begun(self, group: Sequence[int], hello: Hello) -> bool:
        """Whether an earlier run measured points of the group on this very device."""
        recording = self.recording
        keys = (recording.key(recording.points[i], hello) for i in group)
        return any(recording.state.has(key) for key in keys)

    def _keep_earlier(self) -> list[int]:
        """Give finished points to the devices that measured them; returns the others."""
        recording = self.recording
        left = list(range(len(recording.points)))
        rounds = recording.study.measure.rounds
        for hello in recording.earlier_devices():
            there = [
                i
                for i in left
                if finished(
                    Task.of(point := recording.points[i], recording.key(point, hello), hello),
                    recording.state,
                    rounds,
                )
            ]
            recording.assign(there, hello)
            left = [i for i in left if i not in set(there)]
        return left


def finished(task: Task, state: RunState, rounds: int) -> bool:
    """Whether every measurement of a point is there."""
    wanted = (EXACT_ROUND,) if task.exact else range(1, rounds + 1)
    return bool(task.point.skip) or all(state.done(task, round_) for round_ in wanted)
