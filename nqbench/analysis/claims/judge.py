"""Verdicts: does what a paper says hold in these runs?

Each claim is evaluated for every resample of the rounds (``bootstrap``). At one size at least 97.5%
true is ``holds``, at most 2.5% ``fails``, else ``unclear``; over several sizes all must hold, and
any failure fails. Deterministic counts are judged directly.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from nqbench.analysis.claims.bootstrap import RESAMPLES, Resamples
from nqbench.analysis.claims.functions import TOO_OLD, Values
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, in_times_of, timed_runs
from nqbench.analysis.data.select import NotMeasured
from nqbench.errors import StudyError
from nqbench.papers.formula import OF_TIME, UNSAMPLED, Formula, evaluate, parse
from nqbench.papers.schema import Claim, Paper

Word = Literal["holds", "fails", "unclear", "not measured"]
HOLDS: Final = 0.975
FAILS: Final = 0.025
"""Shares of the resamples: a two-sided 95% statement, as for every interval shown."""
BOUNDS: Final = (100 * FAILS, 100 * HOLDS)
ENUMERATED: Final = "enumerated on the CPU"
"""Device of a count that needs no run."""


@dataclass(frozen=True, slots=True)
class SizeVerdict:
    """What came out at one size.

    ``value``   an estimate (bounds: the middle 95% of the resamples), or text if it is not a number
    ``share``   share of the resamples in which the claim is true; ``None`` without a verdict
    ``paper``   the paper's value at this size, as printed
    ``command`` what would measure it, where it was not
    """

    n: int | None
    word: Word
    value: Estimate | str | None = None
    share: float | None = None
    paper: str = ""
    reason: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim's verdict on one device. ``reason`` says what a reader must know about it."""

    claim: Claim
    device: str
    provenance: str
    word: Word
    sizes: tuple[SizeVerdict, ...]
    reason: str = ""

    @property
    def simulated(self) -> bool:
        """Whether it rests on simulated counters."""
        return self.provenance == "simulated"


def judge(paper: Paper, runs: Sequence[Observed], *, full: bool = False) -> list[Verdict]:
    """The verdict on every claim of a paper: one per run, or one for counts that need no run.

    Claims that compare devices are judged once, over all runs (over those with times, if it is
    times that they compare). With a measured run present, a simulated one has no verdict on claims
    that it cannot judge. ``full`` lets counts walk large trees, which takes minutes once.
    """
    runs = [in_times_of(paper, run) for run in runs]
    own = {i: Resamples.of([run.data]) for i, run in enumerate(runs)}
    timed = timed_runs(runs) or runs
    verdicts: list[Verdict] = []
    for claim in paper.claims:
        form = _form(claim)
        if _enumerated(form):
            verdicts.append(
                _verdict(claim, form, Values(paper, runs, Resamples.of([]), full=full), None)
            )
        elif _across(form):
            among = timed if form.names & OF_TIME else runs
            joint = Resamples.of([run.data for run in among])
            verdicts.append(_verdict(claim, form, Values(paper, among, joint), among[0]))
        else:
            verdicts += _worth_a_row(
                [
                    _verdict(claim, form, Values(paper, (run,), own[i]), run)
                    for i, run in enumerate(runs)
                ]
            )
    return verdicts


def _worth_a_row(verdicts: list[Verdict]) -> list[Verdict]:
    """Leave out simulated runs' ``not measured`` if there is a verdict from a GPU's run."""
    if all(verdict.simulated for verdict in verdicts):
        return verdicts
    return [v for v in verdicts if not (v.simulated and v.word == "not measured")]


@dataclass(frozen=True, slots=True)
class _Form:
    """A claim as it is tested: in the paper's words, or in those for other devices."""

    expr: Formula
    expect: Formula | None
    devices: int
    note: str

    @property
    def names(self) -> frozenset[str]:
        return self.expr.names | (self.expect.names if self.expect else frozenset())

    @property
    def sized(self) -> bool:
        """Whether it depends on the size that it is asked at."""
        return self.expr.sized or (self.expect is not None and self.expect.sized)


def _form(claim: Claim) -> _Form:
    today = claim.today
    if today is not None:
        return _Form(parse(today.expr), parse(today.expect), today.devices, today.note)
    return _Form(parse(claim.expr), parse(claim.expect) if claim.expect else None, 1, "")


def _enumerated(form: _Form) -> bool:
    return "count" in form.names and not form.names & (OF_TIME | {"counter"})


def _across(form: _Form) -> bool:
    named = any(k.arg == "hw" for call in form.expr.calls() for k in call.keywords)
    return named or "devices" in form.names


def _verdict(claim: Claim, form: _Form, values: Values, run: Observed | None) -> Verdict:
    device, provenance = (
        (ENUMERATED, "exact") if run is None else (run.data.device, run.data.provenance)
    )
    if claim.kind == "reported_only" and claim.today is None:
        reason = "reported by the paper without a test; it is about another program"
        return Verdict(claim, device, provenance, "not measured", (), reason)
    across = _across(form)
    if across and len(values.runs) > 1:
        device = "; ".join(dict.fromkeys(r.data.device_short for r in values.runs))
    if form.devices > 1 and len(set(values.names["devices"])) < form.devices:
        reason = f"it compares devices: give runs of {form.devices}, nqbench claims RUN RUN"
        return Verdict(claim, device, provenance, "not measured", (), reason)
    if across and form.devices < 2 and (missing := _absent(form, values)):
        return Verdict(claim, device, provenance, "not measured", (), missing)
    sizes = list(claim.n) if run is None or claim.n else run.sizes
    if not claim.n and not form.sized:
        sizes = [0]  # one value over all sizes: asked once, at none in particular
    found = tuple(_size(claim, form, values, n) for n in sizes)
    if not claim.n and not form.sized:
        found = tuple(replace(size, n=None, paper=claim.published(None)) for size in found)
    moved = ""
    if run is not None and run.data.simulated and not set(sizes) & set(run.sizes):
        found, moved = _simulated(claim, form, values, run, found)
    elif not claim.n and "counter" in form.names:
        # A profiler counts the sizes that the study asks it for; the claim names none.
        found = tuple(size for size in found if size.word != "not measured") or found
    word, reason = _combine(found)
    notes = [reason, form.note, moved, *values.notes, _contradiction(claim)]
    return Verdict(claim, device, provenance, word, found, "; ".join(n for n in notes if n))


def _absent(form: _Form, values: Values) -> str:
    """Why a claim about named devices cannot be judged from the runs at hand."""
    wanted = {
        k.value.value
        for call in form.expr.calls()
        for k in call.keywords
        if k.arg == "hw" and isinstance(k.value, ast.Constant)
    }
    names = {h.id: h.name for h in values.paper.hardware}
    lacking = [str(names.get(str(d), d)) for d in sorted(map(str, wanted))]
    have = set(values.names["devices"])
    return f"it is about {', '.join(lacking)}, which {TOO_OLD}" if wanted - have else ""


def _simulated(
    claim: Claim, form: _Form, values: Values, run: Observed, asked: tuple[SizeVerdict, ...]
) -> tuple[tuple[SizeVerdict, ...], str]:
    """What a simulated run counted at its largest size, if it has none of the paper's."""
    if "counter" not in form.names or form.names & OF_TIME:
        return asked, ""
    for n in reversed(run.sizes):
        found = _size(claim, form, values, n)
        if found.word != "not measured":
            sizes = ", ".join(map(str, claim.n))
            return (found,), f"simulated at N={n}, while the paper has N={sizes}"
    return asked, ""


def _size(claim: Claim, form: _Form, values: Values, n: int) -> SizeVerdict:
    values.n = n
    paper = claim.published(n)
    try:
        results = []
        for resample in range(values.resamples.count):
            values.at = resample
            value = evaluate(form.expr, values.functions, values.names)
            results.append((value, _true(form, values, value)))
    except NotMeasured as error:
        what, command = error.what, error.command
        return SizeVerdict(n, "not measured", paper=paper, reason=what, command=command)
    except StudyError as error:
        return SizeVerdict(n, "not measured", paper=paper, reason=error.message)
    finally:
        values.at = 0
    exact = not form.names & (OF_TIME - UNSAMPLED)
    shown = _shown([v for v, _ in results], values.resamples, exact)
    if form.expect is None:
        return SizeVerdict(
            n, "not measured", shown, paper=paper, reason="shown only: it states nothing to judge"
        )
    if exact:
        true = results[0][1]
        return SizeVerdict(n, "holds" if true else "fails", shown, float(true), paper)
    if values.resamples.count == 1:
        reason = "only one round: a verdict on a time needs at least two"
        return SizeVerdict(n, "unclear", shown, None, paper, reason)
    share = float(np.dot([t for _, t in results[1:]], values.resamples.times) / RESAMPLES)
    word: Word = "holds" if share >= HOLDS else "fails" if share <= FAILS else "unclear"
    return SizeVerdict(n, word, shown, share, paper)


def _true(form: _Form, values: Values, value: Any) -> bool:
    if form.expect is None:
        return False
    return bool(evaluate(form.expect, values.functions, values.names | {"value": value}))


def _shown(found: Sequence[Any], resamples: Resamples, exact: bool) -> Estimate | str:
    """A number with the middle 95% of its resamples; anything else as text."""
    first = found[0]
    if isinstance(first, bool):
        if exact or resamples.count == 1:
            return str(first)
        share = float(np.dot([bool(v) for v in found[1:]], resamples.times) / RESAMPLES)
        return f"{first} ({100 * share:.3g}% of resamples true)"
    if isinstance(first, list):
        return "[" + ", ".join(_item(v) for v in first) + "]"
    value = float(first)
    if exact or resamples.count == 1:
        return Estimate(value, exact=exact)
    resampled = np.repeat(np.array(found[1:], dtype=float), resamples.times)
    low, high = np.percentile(resampled, BOUNDS)
    rounds = min(len(r) for r in resamples.rounds)
    return Estimate(value, float(low), float(high), rounds)


def _item(value: Any) -> str:
    return str(value) if isinstance(value, bool) else f"{float(value):.4g}"


def _combine(found: Sequence[SizeVerdict]) -> tuple[Word, str]:
    """Over several sizes all must hold, and any failure fails."""
    words = {size.word for size in found}
    lacking = [s for s in found if s.word == "not measured"]
    commands = [f"`{s.command}` measures it" for s in lacking if s.command]
    reasons = "; ".join(dict.fromkeys([*(s.reason for s in lacking if s.reason), *commands]))
    if "fails" in words:
        failed = [str(s.n) for s in found if s.word == "fails"]
        sizes = f"fails at N={', '.join(failed)}" if len(found) > 1 else ""
        return "fails", sizes
    if not words or words == {"not measured"}:
        return "not measured", reasons or "no size to judge"
    if lacking:
        missing = ", ".join(str(s.n) for s in lacking if s.n is not None)
        return "unclear", f"not measured at N={missing}: {reasons}"
    if "unclear" in words:
        doubtful = [str(s.n) for s in found if s.word == "unclear"]
        where = [f"unclear at N={', '.join(doubtful)}"] if len(found) > 1 else []
        return "unclear", "; ".join(dict.fromkeys([*where, *(s.reason for s in found if s.reason)]))
    return "holds", ""


def _contradiction(claim: Claim) -> str:
    """The caveat to read where the paper's own numbers contradict its sentence."""
    return f"see caveat {claim.caveat}" if claim.caveat else ""
