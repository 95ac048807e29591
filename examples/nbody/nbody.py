"""The right accelerations, in double precision."""

import numpy as np


def accelerations(bodies):
    place, mass = bodies[:, :3].astype(float), bodies[:, 3].astype(float)
    square = (place**2).sum(1)
    found = np.zeros((len(bodies), 4))
    for first in range(0, len(bodies), 512):  # so many rows of the n x n distances at a time
        own = slice(first, first + 512)
        distance = square[own, None] + square - 2 * place[own] @ place.T + 1e-2
        pull = mass / (distance * np.sqrt(distance))
        found[own, :3] = pull @ place - pull.sum(1)[:, None] * place[own]
    return found
