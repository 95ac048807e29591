"""Verdicts: does what a paper says hold in these runs?

Each claim is evaluated for every resample of the rounds (``bootstrap``). At one size at least 97.5%
true is ``holds``, at most 2.5% ``fails``, else ``unclear``; an unclear ratio whose whole interval
lies within 2% of 1 is ``no effect``. Over several sizes all must hold, and any failure fails.
Deterministic counts are judged directly. Beside ``holds``, a second word says whether the effect is
as large as printed (``effect_size``).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from nqbench.analysis.claims.bootstrap import RESAMPLES, Resamples
from nqbench.analysis.claims.effect_size import SizeWord, printed_effect, size_of, together
from nqbench.analysis.claims.functions import TOO_OLD, Values
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.observed import Observed, device_names, in_times_of, timed_runs
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.wording import grouped
from nqbench.errors import StudyError
from nqbench.papers.formula import OF_TIME, UNSAMPLED, Formula, evaluate, parse
from nqbench.papers.schema import Claim, Paper

Word = Literal["holds", "fails", "no effect", "unclear", "not measured"]
WORDS: Final[tuple[Word, ...]] = ("holds", "fails", "no effect", "unclear", "not measured")
HOLDS: Final = 0.975
FAILS: Final = 0.025
"""Shares of the resamples: a two-sided 95% statement, as for every interval shown."""
BOUNDS: Final = (100 * FAILS, 100 * HOLDS)
NO_EFFECT: Final = 0.02
"""A ratio within 2% of 1 is no effect: half of the smallest gain of a step in the papers (1.04)."""
ENUMERATED: Final = "enumerated on the CPU"
"""Device of a count that needs no run."""


@dataclass(frozen=True, slots=True)
class SizeVerdict:
    """What came out at one size.

    ``value``   an estimate (bounds: the middle 95% of the resamples), or text if it is not a number
    ``share``   share of the resamples in which the claim is true; ``None`` without a verdict
    ``paper``   the paper's value at this size, as printed
    ``command`` what would measure it, where it was not
    ``size``    beside ``holds``: whether the effect is as large as printed
    ``effect``  the measured share of the printed effect; ``None`` where none is printed
    """

    n: int | None
    word: Word
    value: Estimate | str | None = None
    share: float | None = None
    paper: str = ""
    reason: str = ""
    command: str = ""
    size: SizeWord = ""
    effect: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim's verdict on one device. ``reason`` says what a reader must know about it.

    ``asked_of``  the compute capability it was tested on, where the sentence is about another
    """

    claim: Claim
    device: str
    provenance: str
    word: Word
    sizes: tuple[SizeVerdict, ...]
    reason: str = ""
    asked_of: str = ""

    @property
    def size(self) -> SizeWord:
        """The second word, over all sizes; empty unless the claim holds."""
        return together([size.size for size in self.sizes]) if self.word == "holds" else ""

    @property
    def tested(self) -> str:
        """The condition that was tested, as written in ``published.yaml``."""
        return self.claim.today.expect if self.claim.today else self.claim.expect

    @property
    def formula(self) -> str:
        """The formula behind the value."""
        return self.claim.today.expr if self.claim.today else self.claim.expr

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
    timed, names = timed_runs(runs) or runs, device_names(runs)
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
            found = [
                replace(_verdict(claim, form, Values(paper, (run,), own[i]), run), device=names[i])
                for i, run in enumerate(runs)
            ]
            verdicts += _drop_unmeasured(found)
    return verdicts


def _drop_unmeasured(verdicts: list[Verdict]) -> list[Verdict]:
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
    n: list[int]

    @property
    def names(self) -> frozenset[str]:
        return self.expr.names | (self.expect.names if self.expect else frozenset())

    @property
    def listed(self) -> list[str]:
        """Names of the values of a formula over written ones: ``[f(s) for s in (...)]``."""
        match self.expr.tree.body:
            case ast.ListComp(generators=[loop]) if isinstance(loop.iter, ast.Tuple | ast.List):
                return [str(i.value) for i in loop.iter.elts if isinstance(i, ast.Constant)]
        return []

    @property
    def band(self) -> tuple[float, float]:
        """Limits of a condition such as ``0.8 < value < 1``; infinite where it is no band."""
        match self.expect.tree.body if self.expect else None:
            case ast.Compare(ast.Constant(low), [_, _], [ast.Name("value"), ast.Constant(high)]):
                return float(str(low)), float(str(high))
        return -math.inf, math.inf

    @property
    def against_one(self) -> bool:
        """Whether the condition is that the value lies above 1, or below it (down to a limit)."""
        match self.expect.tree.body if self.expect else None:
            case ast.Compare(ast.Name("value"), [ast.Gt() | ast.Lt()], [ast.Constant(1)]):
                return True
        return 1 in self.band

    @property
    def sized(self) -> bool:
        """Whether it depends on the size that it is asked at."""
        return self.expr.sized or (self.expect is not None and self.expect.sized)


def _form(claim: Claim) -> _Form:
    today = claim.today
    if today is not None:
        n = claim.n if today.n is None else today.n
        return _Form(parse(today.expr), parse(today.expect), today.devices, today.note, n)
    expect = parse(claim.expect) if claim.expect else None
    return _Form(parse(claim.expr), expect, 1, "", claim.n)


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
    if form.devices > 1 and (lacking := _too_alike(form, values)):
        return Verdict(claim, device, provenance, "not measured", (), lacking)
    if across and form.devices < 2 and (missing := _absent(form, values)):
        return Verdict(claim, device, provenance, "not measured", (), missing)
    sizes = list(form.n) if run is None or form.n else run.sizes
    if not form.n and not form.sized:
        sizes = [0]  # one value over all sizes: asked once, at none in particular
    found = tuple(_size(claim, form, values, n) for n in sizes)
    if not form.n and not form.sized:
        found = tuple(replace(size, n=None, paper=claim.published(None)) for size in found)
    moved = ""
    if run is not None and run.data.simulated and not set(sizes) & set(run.sizes):
        found, moved = _simulated(claim, form, values, run, found)
    elif not form.n and "counter" in form.names:
        # A profiler counts the sizes that the study asks it for; the claim names none.
        found = tuple(size for size in found if size.word != "not measured") or found
    word, reason = _combine(found)
    notes = [reason, form.note, moved, *values.notes, _contradiction(claim)]
    reason = "; ".join(n for n in notes if n)
    asked_of = "" if run is None or word == "not measured" else _asked_of(claim, values)
    return Verdict(claim, device, provenance, word, found, reason, asked_of)


def _too_alike(form: _Form, values: Values) -> str:
    """Why the runs cannot show what differs between generations; empty if they can."""
    have = sorted({run.compute_capability for run in values.runs})
    if len(have) >= form.devices:
        return ""
    return (
        f"it compares {form.devices} generations of GPUs, and the runs are of compute capability"
        f" {', '.join(have) or 'none'} alone: nqbench claims RUN RUN with one of each"
    )


def _asked_of(claim: Claim, values: Values) -> str:
    """The compute capabilities it was asked of, where the sentence is about others."""
    have = {run.compute_capability for run in values.runs}
    if not claim.capabilities or have <= set(claim.capabilities):
        return ""
    return f"compute capability {', '.join(sorted(have))}"


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
    """The verdict at one size, from the claim's value in every resample."""
    values.n = n
    values.edges.clear()
    paper = claim.published(n)
    try:
        results = _evaluated(form, values)
    except NotMeasured as error:
        what, command = error.what, error.command
        return SizeVerdict(n, "not measured", paper=paper, reason=what, command=command)
    except StudyError as error:
        return SizeVerdict(n, "not measured", paper=paper, reason=error.message)
    exact = not form.names & (OF_TIME - UNSAMPLED)
    found = [value for value, _ in results]
    shown = _shown(form, found, values.resamples, exact)
    if form.expect is None:
        reason = "shown only: it states nothing to judge"
        return SizeVerdict(n, "not measured", shown, paper=paper, reason=reason)
    if exact:
        true = results[0][1]
        size = SizeVerdict(n, "holds" if true else "fails", shown, float(true), paper)
    elif values.resamples.count == 1:
        reason = "only one round: a verdict on a time needs at least two"
        return SizeVerdict(n, "unclear", shown, None, paper, reason)
    else:
        share = float(np.dot([t for _, t in results[1:]], values.resamples.times) / RESAMPLES)
        size = SizeVerdict(n, _word(claim, form, share, shown), shown, share, paper)
    size = _at_the_edge(claim, size, values)
    return _with_effect(claim, values, size, [] if exact else found[1:])


def _evaluated(form: _Form, values: Values) -> list[tuple[Any, bool]]:
    """Value and truth in every resample, the run itself first."""
    results = []
    try:
        for resample in range(values.resamples.count):
            values.at = resample
            value = evaluate(form.expr, values.functions, values.names)
            if isinstance(value, float) and not math.isfinite(value):
                raise StudyError(f"the formula `{form.expr.text}` has no finite value here")
            results.append((value, _true(form, values, value)))
    finally:
        values.at = 0
    return results


def _word(claim: Claim, form: _Form, share: float, shown: Estimate | str) -> Word:
    """The first word at one size, from the share of resamples in which the claim is true."""
    low = high = math.nan
    if isinstance(shown, Estimate) and shown.low is not None and shown.high is not None:
        low, high = shown.low, shown.high
    if share >= HOLDS:
        return "holds"
    if share <= FAILS and not (low < form.band[0] and form.band[1] < high):
        return "fails"  # an interval on both sides of a band is too wide to tell
    null = 1 / (1 + NO_EFFECT) <= low <= high <= 1 + NO_EFFECT
    return "no effect" if claim.kind == "ratio" and form.against_one and null else "unclear"


def _at_the_edge(claim: Claim, size: SizeVerdict, values: Values) -> SizeVerdict:
    """An optimum at the edge of what was measured may lie beyond it: it refutes nothing."""
    if claim.kind != "optimum" or size.word != "fails" or not values.edges:
        return size
    reason = f"at the edge of the sweep: {'; '.join(values.edges)}"
    return replace(size, word="unclear", reason=reason)


def _with_effect(
    claim: Claim, values: Values, size: SizeVerdict, found: Sequence[Any]
) -> SizeVerdict:
    """The verdict with the share of the printed effect, and the second word if it holds."""
    hw = str(values.names["hw"])
    printed = printed_effect(values.paper, claim, size.n, hw)
    if printed is None or not isinstance(size.value, Estimate):
        return size
    word, effect = size_of(printed, size.value, found, values.resamples.times, HOLDS)
    return replace(size, effect=effect, size=word if size.word == "holds" else "")


def _true(form: _Form, values: Values, value: Any) -> bool:
    if form.expect is None:
        return False
    return bool(evaluate(form.expect, values.functions, values.names | {"value": value}))


def _shown(form: _Form, found: Sequence[Any], resamples: Resamples, exact: bool) -> Estimate | str:
    """A number with the middle 95% of its resamples; anything else as text."""
    first = found[0]
    if isinstance(first, bool | str):
        text = first if isinstance(first, str) else _yes(first)
        if exact or resamples.count == 1:
            return text
        share = float(np.dot([v == first for v in found[1:]], resamples.times) / RESAMPLES)
        return f"{text} (in {100 * share:.3g}% of the resamples)"
    if isinstance(first, list):
        names = form.listed if len(form.listed) == len(first) else [""] * len(first)
        parts = zip(names, first, strict=True)
        return ", ".join(f"{name}: {_item(v)}" if name else _item(v) for name, v in parts)
    value = float(first)
    if exact or resamples.count == 1:
        return Estimate(value, exact=exact)
    resampled = np.repeat(np.array(found[1:], dtype=float), resamples.times)
    low, high = np.percentile(resampled, BOUNDS)
    rounds = min(len(r) for r in resamples.rounds)
    return Estimate(value, float(low), float(high), rounds)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _item(value: Any) -> str:
    """An item of a list: a whole number with all its digits, to be compared with a count."""
    if isinstance(value, bool):
        return _yes(value)
    return f"{float(value):.0f}" if float(value).is_integer() else f"{float(value):.4g}"


def _combine(found: Sequence[SizeVerdict]) -> tuple[Word, str]:
    """Over several sizes all must hold, and any failure fails.

    No effect at some size contradicts a sentence that claims one at every size.
    """
    words = {size.word for size in found}
    lacking = [s for s in found if s.word == "not measured"]
    commands = [f"`{s.command}` measures it" for s in lacking if s.command]
    reasons = "; ".join([*grouped(s.reason for s in lacking if s.reason), *dict.fromkeys(commands)])
    if "fails" in words:
        return "fails", _where(found, "fails", "fails")
    if not words or words == {"not measured"}:
        return "not measured", reasons or "no size to judge"
    if lacking:
        missing = ", ".join(str(s.n) for s in lacking if s.n is not None)
        return "unclear", f"not measured at N={missing}: {reasons}"
    if "unclear" in words:
        why = grouped(s.reason for s in found if s.reason)
        return "unclear", "; ".join(w for w in (_where(found, "unclear", "unclear"), *why) if w)
    if words == {"no effect"}:
        return "no effect", f"within {NO_EFFECT:.0%} of 1"
    if "no effect" in words:
        return "fails", f"{_where(found, 'no effect', 'no effect')} (within {NO_EFFECT:.0%} of 1)"
    return "holds", ""


def _where(found: Sequence[SizeVerdict], word: Word, text: str) -> str:
    """At which sizes a word came out, where there are several."""
    sizes = ", ".join(str(s.n) for s in found if s.word == word)
    return f"{text} at N={sizes}" if len(found) > 1 else ""


def _contradiction(claim: Claim) -> str:
    """The caveat to read where the paper's own numbers contradict its sentence."""
    return f"see caveat {claim.caveat}" if claim.caveat else ""
