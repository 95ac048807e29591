"""What the tests of the local search share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nqbench.plan import Buffer, KernelPlan
from nqbench.workloads.local_search.instance import Instance


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


LINE_CITIES = 64


def write_line(folder: Path) -> Path:
    """A TSPLIB file of cities at whole numbers of a line: most changes are those of many moves."""
    cities = np.zeros((LINE_CITIES, 2), np.float32)
    cities[:, 0] = np.arange(LINE_CITIES) % 16
    return Path(write_instance(folder, cities))


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


def write_instance(folder: Path, cities: NDArray[np.float32]) -> str:
    """A TSPLIB file that single precision reads back as it was."""
    path = folder / "cities.tsp"
    lines = [f"{i} {float(x)!r} {float(y)!r}" for i, (x, y) in enumerate(cities, 1)]
    head = [f"DIMENSION: {len(cities)}", "EDGE_WEIGHT_TYPE: EUC_2D", "NODE_COORD_SECTION"]
    path.write_text("\n".join([*head, *lines]))
    return str(path)
