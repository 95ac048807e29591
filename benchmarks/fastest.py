"""Store the fastest launch of a run as the user's choice for `nqbench count`.

    nqbench run configs/frontier.yaml --device cuda:0
    python -m benchmarks.fastest results/local/cuda-0/frontier

The entry goes to ``fastest.yaml`` in the cache folder. The line that is printed can be copied to
``nqbench/count/fastest.yaml``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import yaml

from nqbench.analysis.data.dataset import Dataset, PointResult, load_dataset
from nqbench.analysis.data.quantities import TIME
from nqbench.count.choice import NAME, KernelChoice, choice_for, read_choices
from nqbench.errors import NqbenchError, StudyError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.system.files import cache_folder, replacing
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.counting import factors
from nqbench.workloads.counting.resolve import resolve_kernel
from nqbench.workloads.counting.systems import SYSTEMS

JOBS_MADE: Final = "jobs_made"
"""No matter of the kernel's time, by which launches are chosen: kept as it was."""


def line_of(choice: KernelChoice) -> str:
    """The entry as in the file."""
    given = {key: value for key, value in asdict(choice).items() if value not in (None, "", {})}
    text = yaml.safe_dump([given], default_flow_style=True, width=10**6, sort_keys=False)
    return f"- {text.strip()[1:-1]}"


def tuned_from(run: Path) -> tuple[KernelChoice, Path]:
    """Store the fastest launch of a run on a GPU as the user's choice for its compute capability.

    It is the fastest point of a system with ``symmetry: full``, on the board that most of them
    count. Raises ``StudyError`` for a run without one.
    """
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
    kept = [entry for entry in read_choices(path) if (entry.capability, entry.most_n) != same]
    text = "".join(f"{line_of(entry)}\n" for entry in (*kept, choice))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}") from error
    return path


def main(arguments: Sequence[str]) -> int:
    """Store the choice of one run, and print it."""
    if len(arguments) != 1:
        sys.stderr.write("give one run folder, of configs/frontier.yaml on a GPU\n")
        return 2
    try:
        choice, path = tuned_from(Path(arguments[0]))
    except NqbenchError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{line_of(choice)}\nstored in {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
