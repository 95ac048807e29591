"""Warps of one job per lane that run in step: a model of the hardware, over sampled warps.

Every iteration of the loop is one pass of the whole warp, in which some lanes place a queen and
others step back. Jobs are handed out in depth-first order, as by ``assignment: one_per_thread``
with blocks of whole warps, or in a random order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from nqbench.workloads.counting.enumeration import Split, loop_iterations, work_of
from nqbench.workloads.counting.jobs import masks_of_jobs

Order = Literal["consecutive", "random"]
WARP: Final = 32
_STEP_BY: Final = {"somers": 0, "branchy": 1, "place_first": 1, "irrc": 2}  # job_work's numbers


@dataclass(frozen=True, slots=True)
class Sample:
    """Which warps: ``warps`` full ones (all, if there are no more), drawn by ``seed``."""

    warps: int
    seed: int = 1
    order: Order = "consecutive"


def sample_jobs(jobs: int, sample: Sample) -> NDArray[np.int64]:
    """Job numbers of the sampled warps, shape ``(warps, 32)``; the last, short warp is left out."""
    draw = np.random.default_rng(sample.seed)
    full = jobs // WARP
    order = np.arange(full * WARP)
    if sample.order == "random":
        order = draw.permutation(jobs)[: full * WARP]
    chosen = np.sort(draw.choice(full, min(sample.warps, full), replace=False))
    return order.reshape(full, WARP)[chosen]


def utilization(split: Split, loop: str, sample: Sample) -> dict[str, float]:
    """Warp utilization (zhang2011, equation 1) by iterations.

    Keys: ``warps``; ``value``, work over possible work of all sampled warps together; and ``min``,
    ``max``, ``mean``, ``sd`` of the warps' own utilizations.
    """
    words, chosen = _sampled(split, sample)
    iterations = loop_iterations(loop, work_of(split, words, 0, chosen.size)).reshape(chosen.shape)
    longest = iterations.max(axis=1)
    share = iterations.sum(axis=1) / (WARP * longest)
    return {
        "warps": len(chosen),
        "value": float(iterations.sum() / (WARP * longest.sum())),
        "min": float(share.min()),
        "max": float(share.max()),
        "mean": float(share.mean()),
        "sd": float(share.std()),
    }


def divergence(split: Split, loop: str, sample: Sample) -> dict[str, float]:
    """How often the place-or-retreat branch splits a warp.

    Keys: ``warps``; ``warp_iterations_mean``, passes of a warp; ``share``, passes that split over
    all passes of the sampled warps; ``standard_error`` of the share, over warps.
    """
    from nqbench.workloads.counting.job_work import lockstep, trace  # numba: slow to import

    words, chosen = _sampled(split, sample)
    number = _STEP_BY[loop]
    iterations = loop_iterations(loop, work_of(split, words, 0, chosen.size)).reshape(chosen.shape)
    passes = iterations.max(axis=1)
    split_passes = np.empty(len(chosen), np.int64)
    for warp, lengths in enumerate(iterations):
        places = np.zeros((WARP, passes[warp]), np.bool_)
        for lane in range(WARP):
            trace(split.n, split.depth, number, words, warp * WARP + lane, places[lane])
        split_passes[warp] = lockstep(lengths, places)
    share = split_passes.sum() / passes.sum()
    residual = split_passes - share * passes
    return {
        "warps": len(chosen),
        "warp_iterations_mean": float(passes.mean()),
        "share": float(share),
        "standard_error": float(residual.std() / passes.mean() / len(chosen) ** 0.5),
    }


def _sampled(split: Split, sample: Sample) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Masks of the sampled warps' jobs, warp by warp, and their numbers."""
    words = masks_of_jobs(split.n, split.depth, split.symmetry, split.odd_rule).reshape(-1, 3)
    chosen = sample_jobs(len(words), sample)
    return words[chosen.ravel()].ravel(), chosen
