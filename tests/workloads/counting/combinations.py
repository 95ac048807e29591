"""The factor space as the tests walk it: every feasible combination, and a pairwise cover."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import combinations, product

import numpy as np

from nqbench.errors import InfeasibleError
from nqbench.facts import DeviceFacts
from nqbench.point import Level
from nqbench.workloads.base import NOT_APPLICABLE
from nqbench.workloads.counting import WORKLOAD
from nqbench.workloads.counting.factors import CONFIG_FIELDS, TREE_SYMMETRIES

Levels = dict[str, Level]

SHAPES: Mapping[str, tuple[Level, ...]] = {
    "cache": ("default", "prefer_l1", "prefer_shared"),
    "depth": (2, 3, 5),
    "block_size": (1, 32, 33, 64),
}
"""Numbers beside the kernel's own factors; 33 leaves a warp of one thread, 1 makes one of all."""

_PLACE = ("memory", "allocation", "storage", "layout")


@cache
def feasible_places(n: int, device: DeviceFacts) -> tuple[Levels, ...]:
    """Every combination of where and how the words lie that `resolve` accepts; factors that do not
    apply have no level. What the other factors are makes no difference to this."""
    places: dict[tuple[Level, ...], Levels] = {}
    choices = [(*WORKLOAD.factors[name].levels, NOT_APPLICABLE) for name in _PLACE]
    for levels in product(*choices):
        given: Levels = {"n": n, "block_size": 32}
        given |= dict(zip(_PLACE, levels, strict=True))
        with suppress(InfeasibleError):
            factors = WORKLOAD.resolve(given, None, device).factors
            place = {name: factors[name] for name in _PLACE}
            places.setdefault(tuple(place.values()), place)
    return tuple(places.values())


def kernels_at(place: Mapping[str, Level], n: int) -> list[Levels]:
    """Every combination of the other factors that select an instance of the kernel."""
    words = [name for name in CONFIG_FIELDS if WORKLOAD.factors[name].levels]
    others = [name for name in words if name not in (*_PLACE, "adders")]
    choices = [WORKLOAD.factors[name].levels for name in others]
    kernels: list[Levels] = [
        {**place, **dict(zip(others, levels, strict=True)), "n": n} for levels in product(*choices)
    ]
    for kernel in kernels:
        kernel["jobs_made"] = "gpu" if kernel["encoding"] == "packed" else "cpu"
    return [kernel for kernel in kernels if _feasible(kernel)]


def _feasible(kernel: Mapping[str, Level]) -> bool:
    if kernel["symmetry"] not in TREE_SYMMETRIES:
        return False
    if kernel["loop"] == "unrolled":
        pool = kernel["assignment"] in ("warp_pool", "global_pool")
        vectors = kernel["memory"] == "shared" and kernel["storage"] == "vector"
        full = kernel["symmetry"] == "full" and kernel["encoding"] in ("masks", "packed")
        return pool and vectors and full
    if kernel["assignment"] == "warp_pool" or kernel["encoding"] == "packed":
        return False
    return kernel["symmetry"] != "full" or kernel["encoding"] == "masks"


@cache
def pairwise_cover(n: int, device: DeviceFacts, seed: int = 1) -> tuple[Levels, ...]:
    """Kernels, greedily chosen, in which every feasible pair of levels of two factors occurs."""
    draw = random.Random(seed)
    candidates = [
        kernel | {name: draw.choice(_shapes(kernel, name)) for name in SHAPES}
        for place in feasible_places(n, device)
        for kernel in kernels_at(place, n)
    ]
    pairs = _pair_numbers(candidates)
    covered = np.ones(pairs.max() + 1, bool)
    covered[pairs] = False
    chosen: list[Levels] = []
    while not covered.all():
        best = int((~covered[pairs]).sum(axis=1).argmax())
        covered[pairs[best]] = True
        chosen.append(candidates[best])
    return tuple(chosen)


def _shapes(kernel: Mapping[str, Level], name: str) -> tuple[Level, ...]:
    whole_warps = name == "block_size" and kernel["loop"] == "unrolled"
    return (32, 64) if whole_warps else SHAPES[name]


def _pair_numbers(candidates: list[Levels]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Row i: a number for each pair of levels in candidate i; some numbers have no pair."""
    level_numbers: dict[Level, int] = {}
    levels = np.array(
        [
            [level_numbers.setdefault(level, len(level_numbers)) for level in candidate.values()]
            for candidate in candidates
        ]
    )
    most = len(level_numbers)
    pairs = combinations(range(levels.shape[1]), 2)
    return np.stack(
        [(i * most + levels[:, a]) * most + levels[:, b] for i, (a, b) in enumerate(pairs)], axis=1
    )


def label(levels: Mapping[str, Level]) -> str:
    """Short name of a combination, for test ids."""
    return "-".join(str(level) for level in levels.values())
