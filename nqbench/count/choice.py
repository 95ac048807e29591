"""The best known launch per compute capability: a table beside the workload, and the user's own.

Both are ``fastest.yaml``, which says what its keys mean; the user's lies in the cache folder and
comes first. A run that swept the launch gives a new entry (``tuned_from``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from nqbench.errors import StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.files import cache_folder, replacing
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.counting import factors
from nqbench.workloads.counting.factors import MAX_N, has_instructions
from nqbench.workloads.counting.jobs import count_jobs
from nqbench.workloads.counting.known import eighth_nodes
from nqbench.workloads.counting.resolve import resolve_kernel
from nqbench.workloads.counting.systems import SYSTEMS

if TYPE_CHECKING:
    from nqbench.analysis.data.dataset import Dataset, PointResult

NAME: Final = "fastest.yaml"
PACKAGED: Final = Path(__file__).with_name(NAME)
MAX_JOBS: Final = 1 << 28
"""Of a launch: thousands for every thread of a large GPU, in 4 GB of its memory."""

NODES_PER_SM_S: Final = 5e8
"""Nodes per second and multiprocessor where nothing was measured: a ninth of what a first kernel
did on an H100 (N = 18 in 17.6 ms), so that a slow GPU gets short launches."""

JOBS_MADE: Final = "jobs_made"
"""No matter of the kernel's time, by which launches are chosen: kept as it was."""

SIMULATED_NODES_S: Final = 1e6
"""The simulator runs some million nodes per second of the CPU."""


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A launch: see ``fastest.yaml`` for the fields."""

    capability: str
    system: str
    n: int
    depths: Mapping[int, int]
    levels: Mapping[str, Level] = field(default_factory=dict)
    kernel_s: float | None = None
    gpu: str = ""
    multiprocessors: int = 0
    date: str = ""
    study: str = ""
    most_n: int = MAX_N

    def depth_at(self, n: int) -> int:
        """Rows of the jobs of a board, of which there are at most ``MAX_JOBS``.

        Boards below those in ``depths`` leave as many rows to search as the smallest, others place
        as many as the next smaller one.
        """
        depth = self.wanted_depth(n)
        while (
            depth > 2
            and count_jobs(n, depth, "full", limit=MAX_JOBS, closed=self.closed_jobs) > MAX_JOBS
        ):
            depth -= 1
        return depth

    def wanted_depth(self, n: int) -> int:
        """The same however many jobs there are: a launch may take some of them."""
        near = max((k for k in self.depths if k <= n), default=min(self.depths))
        return max(2, self.depths[near] - max(0, near - n))

    @property
    def closed_jobs(self) -> bool:
        """See ``border``."""
        return factors.takes_closed_jobs(self.loop)

    @property
    def loop(self) -> Level:
        """The loop of the kernel."""
        return {**SYSTEMS.get(self.system, {}), **self.levels}.get("loop", "")

    def seconds(self, n: int, device: DeviceFacts | None = None) -> float:
        """Predicted seconds of the kernel on a device, by nodes of the tree; within a factor.

        Without ``device``: on the GPU on which it was measured.
        """
        if device is not None and device.kind != "cuda":
            return eighth_nodes(n) / SIMULATED_NODES_S
        multiprocessors = device.multiprocessors if device is not None else self.multiprocessors
        if self.kernel_s is None:
            return eighth_nodes(n) / (NODES_PER_SM_S * multiprocessors)
        share = self.multiprocessors / multiprocessors
        return self.kernel_s * share * eighth_nodes(n) / eighth_nodes(self.n)

    @property
    def line(self) -> str:
        """The entry as in the file."""
        given = {key: value for key, value in asdict(self).items() if value not in (None, "", {})}
        text = yaml.safe_dump([given], default_flow_style=True, width=10**6, sort_keys=False)
        return f"- {text.strip()[1:-1]}"

    @property
    def origin(self) -> str:
        """Where it was measured."""
        if self.kernel_s is None:
            return "not measured yet"
        return f"{self.gpu}, {self.date}, study {self.study}"


def choice_for(device: DeviceFacts, n: int = 0) -> tuple[KernelChoice, str]:
    """The choice for a board (0: of usual size) on a device, and where it comes from, in words."""
    wanted = device.compute_capability
    own = cache_folder() / NAME
    stored = [
        choice
        for source in (PACKAGED, own)
        for choice in sorted(_read(source), key=lambda choice: -choice.most_n)
    ]
    known = {
        choice.capability: choice
        for choice in stored
        if n <= choice.most_n and has_instructions(device, choice.loop)
    }

    def far(capability: str) -> tuple[int, int]:
        major, minor = map(int, capability.split("."))
        step = 10 * (major - wanted[0]) + minor - wanted[1]
        return abs(step), step

    nearest = known[min(known, key=far)]
    name = f"{wanted[0]}.{wanted[1]}"
    if nearest.capability == name:
        return nearest, f"the choice for compute capability {name}: {nearest.origin}"
    advice = "; nqbench count --tuned-from RUN stores one" if device.kind == "cuda" else ""
    return nearest, (
        f"no choice is stored for compute capability {name}, so that of {nearest.capability}:"
        f" {nearest.origin}{advice}"
    )


def recorded_choice(n: int) -> KernelChoice:
    """The measured choice for a board that comes with nqbench."""
    return min((c for c in _read(PACKAGED) if n <= c.most_n), key=lambda choice: choice.most_n)


def _read(path: Path) -> list[KernelChoice]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    try:
        found = [KernelChoice(**entry) for entry in yaml.safe_load(text)]
        for choice in found:
            choice.depth_at(choice.n)
        return found
    except (yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"{path} holds no choices of kernels ({error}); delete it, or store one with"
            " nqbench count --tuned-from RUN"
        ) from error


def tuned_from(run: Path) -> tuple[KernelChoice, Path]:
    """Store the fastest launch of a run on a GPU as the user's choice for its compute capability.

    It is the fastest point of a system with ``symmetry: full``, on the board that most of them
    count. Raises ``StudyError`` for a run without one.
    """
    from nqbench.analysis.data.dataset import load_dataset
    from nqbench.analysis.data.quantities import TIME

    data = load_dataset(run)
    device = data.manifest["device"]
    points = [p for p in data.points if p.ok and p.system and p.level("symmetry") == "full"]
    if not points or device["kind"] != "cuda" or data.synthetic:
        raise StudyError(
            f"{run} has no times of a system with symmetry: full on a GPU; run the study"
            " configs/frontier.yaml on one"
        )
    sizes = [point.n for point in points]
    n = max(sizes, key=lambda size: (sizes.count(size), size))
    times = [(p.estimate(TIME), p) for p in points if p.n == n]
    seconds, best = min((t.value, number) for number, (t, _) in enumerate(times) if t is not None)
    point, facts = times[best][1], device["facts"]
    gpu = DeviceFacts.from_dict(facts)
    before, _ = choice_for(gpu, n)
    depths = _depths(data, point) | {n: int(point.level("depth"))}
    if before.system == point.system:  # boards too large for a study keep theirs
        depths |= {k: depth for k, depth in before.depths.items() if k > max(sizes)}
    found = KernelChoice(
        capability="{}.{}".format(*facts["compute_capability"]),
        system=point.system,
        n=n,
        depths=depths,
        levels={JOBS_MADE: before.levels.get(JOBS_MADE, "gpu"), **_own_levels(data, point, gpu)},
        kernel_s=float(f"{seconds:.4g}"),
        gpu=str(facts["name"]),
        multiprocessors=int(facts["multiprocessors"]),
        date=str(data.manifest.get("created", ""))[:10],
        study=str(data.study["name"]),
        most_n=factors.most_n(SYSTEMS[point.system]["loop"]),
    )
    return found, _store(found)


def _depths(data: Dataset, chosen: PointResult) -> dict[int, int]:
    """The fastest depth of the chosen system on each board that was measured with several: jobs of
    more rows take longer to make, so all of the time counts."""
    from nqbench.analysis.data.quantities import TIME

    whole = replace(TIME, columns=("total_s",))
    times: dict[int, list[tuple[float, int]]] = {}
    for point in data.points:
        seconds = point.estimate(whole) if point.ok and point.system == chosen.system else None
        if seconds is not None:
            times.setdefault(point.n, []).append((seconds.value, int(point.level("depth"))))
    several = {n: found for n, found in times.items() if len({depth for _, depth in found}) > 1}
    return {n: min(found)[1] for n, found in sorted(several.items())}


def _own_levels(data: Dataset, point: PointResult, gpu: DeviceFacts) -> dict[str, Level]:
    """What differs from the levels that the system takes by itself for this board on this GPU."""
    given = {"n": point.n, "depth": int(point.level("depth"))}
    usual, _, _ = resolve_kernel(given, point.system, gpu)
    planned = next(p["factors"] for p in data.manifest["points"] if p["key"] == point.key)
    return {
        name: level
        for name, level in planned.items()
        if name in factors.FACTORS
        and name not in (*given, JOBS_MADE, "probe")
        and level not in (NOT_APPLICABLE, usual[name])
    }


def _store(choice: KernelChoice) -> Path:
    path = cache_folder() / NAME
    same = (choice.capability, choice.most_n)
    kept = [entry for entry in _read(path) if (entry.capability, entry.most_n) != same]
    text = "".join(f"{entry.line}\n" for entry in (*kept, choice))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from error
    return path
