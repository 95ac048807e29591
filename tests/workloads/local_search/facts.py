"""What the tests of the local search share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nqbench.plan import Buffer, KernelPlan
from nqbench.workloads.local_search import instance, searches
from nqbench.workloads.local_search.instance import Instance

Cities = NDArray[np.float32]


def length(instance: Instance, tour: NDArray[np.uint32]) -> float:
    """Of the closed tour, edge by edge in double precision."""
    places = [tuple(map(float, instance.cities[city])) for city in tour]
    pairs = zip(places, [*places[1:], places[0]], strict=True)
    return float(sum(((a - c) ** 2 + (b - d) ** 2) ** 0.5 for (a, b), (c, d) in pairs))


def swapped(tour: NDArray[np.uint32], x: int, y: int) -> NDArray[np.uint32]:
    """The tour with the cities at two positions swapped."""
    result = tour.copy()
    result[[x, y]] = result[[y, x]]
    return result


LINE = np.zeros((64, 2), np.float32)
"""Cities at whole numbers of a line: most changes are those of many moves."""
LINE[:, 0] = np.arange(len(LINE)) % 16


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Cities], None]]:
    """Makes the instances of a test have these cities."""
    caches = (instance.load_instance, searches.reference_search)

    def give(cities: Cities) -> None:
        monkeypatch.setattr(instance, "uniform_cities", lambda *_: cities.copy())
        for cache in caches:
            cache.cache_clear()

    yield give
    for cache in caches:
        cache.cache_clear()


def root_error_plan(stride: int, blocks: int) -> KernelPlan:
    """The largest relative error of the hardware's root: bits of a double in ``worst[0]``."""
    return KernelPlan(
        Path(__file__).with_name("root_error.cu"),
        "root_error",
        (np.uint32(stride), "worst"),
        buffers=(Buffer("worst", "uint64", 1, zero=True, output=True),),
        grid=(blocks, 1, 1),
        block=(256, 1, 1),
    )
