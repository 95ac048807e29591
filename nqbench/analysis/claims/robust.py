"""Robust or fragile: words of verdicts judged again in other ways that are as good, and how many of
them chance alone would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nqbench.analysis.claims.judge import LACKING, Verdict, judge
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import ALPHA
from nqbench.analysis.data.for_papers import in_phase
from nqbench.papers.schema import Paper

DECIDED: Final = ("holds", "fails", "no effect")
"""Words that another way may keep or lose; ``unclear`` has nothing to lose."""


def robust(paper: Paper, run: Dataset, usual: Sequence[Verdict], name: str) -> dict[str, list[str]]:
    """By claim, for each other way to judge it: what its word is there, empty where it stays.

    Limits halved and doubled, each round left out, kernel times for totals or the other way round.
    ``usual`` are the verdicts on the run, ``name`` is how it is called.
    """
    words = {v.claim.id: v.word for v in usual if v.sampled and v.word in DECIDED}
    alone = paper.model_copy(update={"claims": [c for c in paper.claims if c.id in words]})
    found: dict[str, list[str]] = {claim: [] for claim in words}
    for said, again in _ways(alone, run):
        for verdict in again:
            if verdict.word != LACKING:
                kept = verdict.word == words[verdict.claim.id]
                found[verdict.claim.id].append("" if kept else f"{verdict.word} {said} ({name})")
    return found


def _ways(paper: Paper, run: Dataset) -> Iterator[tuple[str, list[Verdict]]]:
    yield "with limits halved", judge(paper, [run], limits=0.5)
    yield "with limits doubled", judge(paper, [run], limits=2.0)
    for i in range(run.rounds if run.rounds > 2 else 0):
        yield f"without round {i + 1}", judge(paper, [run], without=i)
    other = "kernel" if paper.timed == "total" else "total"
    plain = paper.model_copy(update={"timed": "kernel"})
    yield f"by {other} times", judge(plain, [in_phase(run, other)])


def by_chance(paper: Paper, runs: Sequence[Dataset], verdicts: Sequence[Verdict]) -> list[str]:
    """For each device: how many words on times chance makes wrong at most, and how many of them
    stand where the level is divided by their number (Bonferroni)."""
    devices: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.sampled and verdict.word in DECIDED:
            devices.setdefault(verdict.device, []).append(verdict)
    said = []
    for device, mine in devices.items():
        again = judge(paper, runs, confidence=1 - ALPHA / len(mine))
        words = {(v.claim.id, v.device): v.word for v in again}
        stand = sum(words.get((v.claim.id, v.device)) == v.word for v in mine)
        said.append(
            f"{device}: of {len(mine)} decided words on times chance makes at most"
            f" {len(mine) * ALPHA / 2:.2g} wrong at this level; {stand} of them stand at the level"
            " corrected for all of them"
        )
    return said
