"""Do the GPUs of a model give the same words? A further run of a paper against the first one, each
judged alone.

    python -m benchmarks.specimens [--all]

A claim is asked at the sizes that both runs have, of the points that the verdicts on all GPUs of
a model use. ``--all`` names the claims whose word differs.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from nqbench.analysis.claims.judge import LACKING, Verdict, _combine, _Form, judge
from nqbench.analysis.data.dataset import Dataset
from nqbench.papers import load_paper, paper_names
from nqbench.papers.schema import Paper
from nqbench.report.papers.write import CPU_BASELINE, with_repeated
from nqbench.runs.reading import recorded_runs


def compared(paper: Paper, first: Dataset, other: Dataset) -> list[tuple[Verdict, str, str]]:
    """The claims that both runs judge: the first one's verdict, and the word of each."""
    theirs = {verdict.claim.id: verdict for verdict in judge(paper, [other])}
    found: list[tuple[Verdict, str, str]] = []
    for verdict in judge(paper, [replace(first, again=())]):
        form, again = _Form.of(verdict.claim, 1.0), theirs.get(verdict.claim.id)
        about_one = not form.enumerated and not form.across and form.comparable(first, other)
        if again is None or not about_one or not verdict.claim.expect:
            continue
        mine, own = ({s.n: s for s in v.sizes if s.word != LACKING} for v in (verdict, again))
        if both := [n for n in mine if n in own]:
            word, other_word = (_combine([sizes[n] for n in both])[0] for sizes in (mine, own))
            found.append((verdict, word, other_word))
    return found


def main() -> None:
    cpu = next(iter(recorded_runs(CPU_BASELINE, "reference")), None)
    lines = []
    for paper in map(load_paper, paper_names()):
        for first in with_repeated(recorded_runs(paper.id, "reference"), cpu):
            for other in first.again:
                found = compared(paper, first, other)
                alike = sum(mine == theirs for _, mine, theirs in found)
                turned = sum({mine, theirs} == {"holds", "fails"} for _, mine, theirs in found)
                name = other.path.as_posix()
                lines.append(f"{name}: {alike} of {len(found)} words alike, {turned} reversed")
                differ = (one for one in found if one[1] != one[2] and "--all" in sys.argv)
                lines += [f"    {v.claim.id}: {mine} -> {theirs}" for v, mine, theirs in differ]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
