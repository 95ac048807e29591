"""Verdicts: does what a paper says hold in these runs?

Each claim is evaluated for every resample of the rounds (``bootstrap``). At one size a value that
should differ from 1 is ``no effect`` where its whole interval lies within the margin of 1, as
``compare`` has it: asked first, since a significant difference within the margin is one that
matters to nobody. Else at least 97.5% true is ``holds``, at most 2.5% ``fails``, else ``unclear``.
Over several sizes all must hold, and any failure fails. Deterministic counts are judged directly.
Where several GPUs of one model were measured, a word stands at a size if all of them have it.

Beside ``holds``, a second word says whether the effect is as large as printed: "19 percent faster"
is true of 1.3%, too, so where the paper prints a size, the measured effect is set against it
(``Claim.size_as``):

- ``gain``: share of the effect, (ours - 1) / (printed - 1). 1.013 is 7% of a printed 1.19.
- ``value``: ours / printed, for shares, percentages, differences and counters.

The printed number stands for all that round to it: half a unit of its last digit either way. Where
the paper gives one number for each of its devices, the effect may lie anywhere between them.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import partial, reduce
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nqbench.analysis.claims.bootstrap import RESAMPLES, Resamples
from nqbench.analysis.claims.functions import TOO_OLD, Values
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.data.estimate import CONFIDENCE, DEFAULT_MARGIN, Estimate
from nqbench.analysis.data.for_papers import device_names, in_times_of
from nqbench.analysis.data.select import NotMeasured
from nqbench.analysis.wording import grouped
from nqbench.errors import StudyError
from nqbench.expressions import Expression, evaluate, parse
from nqbench.papers.formula import CLAIMS, OF_TIME, UNSAMPLED, sized, with_limits
from nqbench.papers.schema import Claim, Paper, Today

SizeWord = Literal["", "as large", "weaker", "stronger", "size unclear", "mixed sizes"]
SIZE_WORDS: Final[tuple[SizeWord, ...]] = get_args(SizeWord)[1:]
WEAKER: Final = 0.8
STRONGER: Final = 1.25
"""Limits of the share of an effect that still counts as large: a fifth less, or a quarter more,
which is the same on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The effect that a paper prints, as the smallest and the largest effect that it may mean.

    ``smallest`` and ``largest`` are distances from ``null``, rounding included, with one sign;
    ``near`` and ``far`` are the printed numbers themselves.
    """

    null: float
    smallest: float
    largest: float
    near: float
    far: float

    def share(self, value: float) -> float:
        """How much of the effect a value is: 1 between the printed numbers, below if smaller."""
        effect = value - self.null
        return effect / self.near if effect / self.near < 1 else max(1.0, effect / self.far)

    def word(self, value: float) -> SizeWord:
        """The word for a value without uncertainty."""
        effect = value - self.null
        if effect / self.smallest < WEAKER:
            return "weaker"
        return "stronger" if effect / self.largest > STRONGER else "as large"


def printed_effect(paper: Paper, claim: Claim, n: int | None, hw: str) -> Printed | None:
    """The effect that a claim prints at a size; ``None`` if it prints no number, or no effect.

    ``hw``  the run's device as the paper calls it: its own number is taken where there is one
    """
    if claim.size_as == "none":
        return None
    null = 1.0 if claim.size_as == "gain" else 0.0
    by_device = paper.by_device(claim)
    own = [by_device[hw]] if hw in by_device else list(by_device.values())
    numbers = []
    for text in own or claim.published(n).split(", "):  # of several devices
        with contextlib.suppress(InvalidOperation):  # words
            numbers.append(Decimal(text))
    numbers = [number for number in numbers if number.is_finite()]
    if not numbers:
        return None
    # Half a unit of the last printed digit either way; a whole number is printed in full.
    halves = [0.5 * 10.0 ** int(d.as_tuple().exponent) for d in numbers]
    ends = [float(d) + s * h - null for d, h in zip(numbers, halves, strict=True) for s in (-1, 1)]
    effects = [float(d) - null for d in numbers]
    if min(ends) <= 0 <= max(ends):
        return None  # printed as no effect, or with both signs
    near, far = min(effects, key=abs), max(effects, key=abs)
    return Printed(null, min(ends, key=abs), max(ends, key=abs), near, far)


def size_of(
    printed: Printed, value: Estimate, found: Sequence[float], times: NDArray[np.int64]
) -> tuple[SizeWord, Estimate]:
    """The word for an effect and its share, from the values of all resamples.

    ``found``  values in the distinct resamples, ``times`` how often each came up (both empty for an
    exact value)
    """
    bounds = [printed.share(b) for b in (value.low, value.high) if b is not None]
    low, high = (min(bounds), max(bounds)) if len(bounds) == 2 else (None, None)
    share = Estimate(printed.share(value.value), low, high, value.rounds, value.exact)
    if not len(found):
        return printed.word(value.value), share
    words = np.array([printed.word(v) for v in found])
    weights = times / times.sum()
    for word in ("as large", "weaker", "stronger"):
        if float(weights[words == word].sum()) >= HOLDS:
            return word, share
    return "size unclear", share


VerdictWord = Literal["holds", "fails", "no effect", "unclear", "not measured"]
WORDS: Final[tuple[VerdictWord, ...]] = get_args(VerdictWord)
LACKING: Final = "not measured"
HOLDS: Final = 0.975
FAILS: Final = 0.025
"""Shares of the resamples: a two-sided 95% statement, as for every interval shown."""
SWEPT: Final = frozenset({"times", "argbest", "levels", "recorded", "sizes_of", "sizes"})
"""What has another value in a run of fewer points."""
OF_RUN: Final = frozenset({"counter", "recorded", "hw", "devices", "sizes", "logical_cores"})
"""What else a formula reads of a run, besides times."""
ENUMERATED: Final = "enumerated on the CPU"
"""Device of a count that needs no run."""
MODELLED: Final = "modelled"
"""Provenance of a verdict on modelled times: neither measured nor, as counters are, exact."""
TOLD: Final = 1.05
"""The modelled time is judged by the signs of effects above 5% (docs/simulator.md)."""
ON_CPU: Final = " (timed beside the simulator)"
"""After the CPU that a simulated run timed programs on."""


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
    word: VerdictWord
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

    ``asked_of``  the compute capability it was tested on, where the sentence is about another GPU
                  and depends on the architecture
    ``own``       whether it was tested in the paper's own form, on the paper's own GPU
    """

    claim: Claim
    device: str
    provenance: str
    word: VerdictWord
    sizes: tuple[SizeVerdict, ...]
    reason: str = ""
    asked_of: str = ""
    own: bool = False

    @property
    def size(self) -> SizeWord:
        """The second word, over all sizes; empty unless the claim holds."""
        words = {size.size for size in self.sizes if size.size and self.word == "holds"}
        return "mixed sizes" if len(words) > 1 else next(iter(words), "")

    @property
    def asked(self) -> Claim | Today:
        """The form that was tested, with formula and condition as in ``published.yaml``."""
        return (not self.own and self.claim.today) or self.claim

    @property
    def sampled(self) -> bool:
        """Whether it rests on times, which vary from round to round."""
        form = _Form.of(self.claim, 1.0, own=self.own)
        return bool(form.names & (OF_TIME - UNSAMPLED))


def judge(
    paper: Paper,
    runs: Sequence[Dataset],
    *,
    limits: float = 1.0,
    without: int | None = None,
    confidence: float = CONFIDENCE,
) -> list[Verdict]:
    """The verdict on every claim of a paper: one per run, or one for counts that need no run.

    Claims that compare devices are judged once, over all runs (over those with times, if it is
    times that they compare). With a measured run present, a simulated one has no verdict on claims
    that it cannot judge.

    ``limits``      what every limit's distance from no effect is multiplied by
    ``without``     a round that is left out
    ``confidence``  of the intervals
    """
    runs = [in_times_of(paper, run) for run in runs]
    drawn = partial(Resamples.of, without=without, confidence=confidence)
    own = [[(one, drawn([one])) for one in (run, *run.again)] for run in runs]
    timed = [run for run in runs if not run.simulated] or runs
    names = device_names(runs)
    verdicts: list[Verdict] = []
    for claim in paper.claims:
        own_cards = {name for name in claim.hardware if paper.device(name).kind == "gpu"}
        there = own_cards <= {run.hardware(paper) for run in runs}
        form = _Form.of(claim, limits, own=bool(own_cards) and there)
        if form.enumerated:
            verdicts.append(_verdict(claim, form, Values(paper, runs), None))
        elif form.across:
            among = timed if form.names & OF_TIME else runs
            values = Values(paper, among, drawn(among))
            verdicts.append(_verdict(claim, form, values, among[0]))
        else:
            found = []
            for run, gpus, name in zip(runs, own, names, strict=True):
                hw = run.hardware(paper)
                if run.modelled and own_cards and hw not in own_cards:
                    continue  # another of the paper's GPUs is modelled for it
                form = _Form.of(claim, limits, own=hw in claim.hardware)
                lent = form.lent(paper, run.baseline)
                values, *again = (
                    Values(paper, (one,), drawn([one], lent=lent) if lent else resamples)
                    for one, resamples in gpus
                    if one is run or form.comparable(run, one)
                )
                verdict = _verdict(claim, form, values, run, again)
                cpu = verdict.device.endswith(ON_CPU)
                found.append(verdict if cpu else replace(verdict, device=name))
            # A simulated run has no row on what it lacks, beside a verdict from a GPU's run.
            measured = [v for v in found if v.provenance != "simulated" or v.word != LACKING]
            counted = all(v.provenance == "simulated" for v in found)
            verdicts += found if counted else measured
    return verdicts


@dataclass(frozen=True, slots=True)
class _Form:
    """A claim as it is tested: in the paper's words on its own devices, else in those for others.

    ``limits``  what the limits of its condition and of no effect are multiplied by
    ``own``     whether it is in the paper's words
    """

    expr: Expression
    expect: Expression | None
    devices: int
    note: str
    n: list[int]
    limits: float
    own: bool

    @classmethod
    def of(cls, claim: Claim, limits: float, *, own: bool = False) -> _Form:
        today = None if own else claim.today
        asked = today or claim
        n = claim.n if asked.n is None else asked.n
        expect = parse(asked.expect, CLAIMS) if asked.expect else None
        if expect and limits != 1:
            expect = with_limits(expect, limits, claim.kind, claim.unit)
        devices, note = (today.devices, today.note) if today else (1, "")
        return cls(parse(asked.expr, CLAIMS), expect, devices, note, n, limits, own)

    @property
    def names(self) -> frozenset[str]:
        """All names in it, those of functions included."""
        trees = [formula.tree for formula in (self.expr, self.expect) if formula]
        nodes = (node for tree in trees for node in ast.walk(tree))
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name))

    def lent(self, paper: Paper, baseline: Dataset | None) -> Dataset | None:
        """The run of the CPU programs, if it names one of them."""
        programs = {p.system for p in baseline.points} if baseline else {""}
        nodes = (c for f in (self.expr, self.expect) if f for c in ast.walk(f.tree))
        texts = (c.value for c in nodes if isinstance(c, ast.Constant))
        systems = {paper.system(text) for text in texts if isinstance(text, str)}
        return baseline if baseline and systems & programs else None

    def comparable(self, run: Dataset, other: Dataset) -> bool:
        """Whether another GPU's run can be asked the same: a formula over what was measured takes
        all points of the run."""
        points = [{(p.system, p.n, *map(str, p.levels.items())) for p in r.points if p.ok}
                  for r in (run, other)]  # fmt: skip
        swept = self.names & SWEPT or "highest_occupancy" in self.expr.text
        return not swept or points[0] <= points[1]

    @property
    def enumerated(self) -> bool:
        """Whether it rests on counts, or on arithmetic, that need no run."""
        return self.expect is not None and not self.names & (OF_TIME | OF_RUN)

    @property
    def devices_named(self) -> list[ast.expr]:
        """What is given for ``hw`` in the calls of the formula."""
        return [k.value for call in self.expr.calls() for k in call.keywords if k.arg == "hw"]

    @property
    def across(self) -> bool:
        """Whether it compares devices."""
        return bool(self.devices_named) or "devices" in self.names

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
        return sized(self.expr) or (self.expect is not None and sized(self.expect))


def _verdict(
    claim: Claim, form: _Form, values: Values, run: Dataset | None, again: Sequence[Values] = ()
) -> Verdict:
    device, provenance = (run.device, run.provenance) if run is not None else (ENUMERATED, "exact")
    if form.across and len(values.runs) > 1:
        device = "; ".join(dict.fromkeys(r.device_short for r in values.runs))
    if lacking := _cannot_be_judged(claim, form, values):
        return Verdict(claim, device, provenance, LACKING, (), lacking, own=form.own)
    sizes, few = list(form.n) if run is None or form.n else run.sizes, ""
    if run is not None and run.modelled and (own := [n for n in sizes if n in run.sizes]):
        few = f"asked at N={', '.join(map(str, own))} alone" if own != sizes else ""
        sizes = own

    def asked(n: int) -> SizeVerdict:
        return reduce(_of_both, (_size(claim, form, one, n) for one in (values, *again)))

    if form.n or form.sized:
        found = tuple(asked(n) for n in sizes)
    else:  # one value over all sizes: asked once, at none in particular
        sizes, found = [0], (replace(asked(0), n=None, paper=claim.published(None)),)
    timed = bool(form.names & (OF_TIME - UNSAMPLED))
    moved, counted = "", "counter" in form.names and not form.names & OF_TIME
    # What is said of several sizes may depend on them; the counters of a kernel do less.
    counted |= run is not None and run.modelled and timed and len(sizes) == 1
    if run is not None and run.simulated and not set(sizes) & set(run.sizes):
        # What was counted at the run's largest size, as it has none of the paper's.
        elsewhere = (_size(claim, form, values, n) for n in reversed(run.sizes) if counted)
        if there := next((size for size in elsewhere if size.word != LACKING), None):
            paper = ", ".join(map(str, claim.n))
            found = (replace(there, size="", effect=None),)
            moved = f"simulated at N={there.n}, while the paper has N={paper}"
    elif not form.n and "counter" in form.names:
        # A profiler counts the sizes that the study asks it for; the claim names none.
        found = tuple(size for size in found if size.word != LACKING) or found
    word, reason = _combine(found)
    caveat = f"see caveat {claim.caveat}" if claim.caveat else ""
    reason = "; ".join(n for n in (reason, form.note, few, moved, *values.notes, caveat) if n)
    asked_of = ""
    others = run is not None and values.paper.about_others(claim, run.hardware(values.paper))
    if others and word != LACKING:
        have = sorted({run.compute_capability for run in values.runs})
        asked_of = f"compute capability {', '.join(have)}"
    if run is not None and run.simulated and timed and word != LACKING:
        provenance, asked_of = MODELLED if run.modelled else run.cpu_provenance, ""
        device = device if run.modelled else f"{run.cpu}{ON_CPU}"
    return Verdict(claim, device, provenance, word, found, reason, asked_of, form.own)


def _cannot_be_judged(claim: Claim, form: _Form, values: Values) -> str:
    """Why no run at hand can show what the claim is about; empty if one may."""
    if claim.kind == "reported_only" and claim.today is None:
        why = claim.note or "it is about another program"
        return f"reported by the paper without a test; {why}"
    have = sorted({run.compute_capability for run in values.runs})
    if 1 < form.devices > len(have):
        return (
            f"it compares {form.devices} generations of GPUs, and the runs are of compute"
            f" capability {', '.join(have) or 'none'} alone: nqbench claims RUN RUN with one of"
            " each"
        )
    wanted = {str(hw.value) for hw in form.devices_named if isinstance(hw, ast.Constant)}
    if form.devices < 2 and wanted - set(values.names["devices"]):
        names = {h.id: h.name for h in values.paper.hardware}
        lacking = ", ".join(str(names.get(device, device)) for device in sorted(wanted))
        return f"it is about {lacking}, which {TOO_OLD}"
    return ""


def _size(claim: Claim, form: _Form, values: Values, n: int) -> SizeVerdict:
    """The verdict at one size, from the claim's value in every resample."""
    values.n = n
    values.edges.clear()
    size = SizeVerdict(n, LACKING, paper=claim.published(n))
    timed = bool(form.names & (OF_TIME - UNSAMPLED))
    model = timed and values.runs[values.run].modelled
    exact = model or not timed
    try:
        results = _evaluated(form, values, exact)
    except NotMeasured as error:
        return replace(size, reason=error.what, command=error.command)
    except StudyError as error:
        return replace(size, reason=error.message)
    found = [value for value, _ in results]
    resamples = values.resamples
    shown = _shown(form, found, resamples, exact)
    size = replace(size, value=shown)
    if form.expect is None:
        return replace(size, reason="shown only: it states nothing to judge")
    if exact:
        true = results[0][1]
        size = replace(size, word="holds" if true else "fails", share=float(true))
        near = isinstance(shown, Estimate) and shown.distance < math.log(TOLD)
        if model and form.against_one and near:
            reason = f"the model does not tell effects below {TOLD - 1:.0%} apart"
            size = replace(size, word="unclear", reason=reason)
    elif len(found) == 1:
        reason = "only one round: a verdict on a time needs at least two"
        size = replace(size, word="unclear", reason=reason)
    else:
        share = float(np.dot([t for _, t in results[1:]], resamples.times) / RESAMPLES)
        size = replace(size, word=_word(form, share, shown), share=share)
    if claim.kind == "optimum" and size.word == "fails" and values.edges:
        # An optimum at the edge of what was measured may lie beyond it: it refutes nothing.
        reason = f"at the edge of the sweep: {'; '.join(values.edges)}"
        size = replace(size, word="unclear", reason=reason)
    printed = printed_effect(values.paper, claim, n, str(values.names["hw"]))
    if printed is not None and isinstance(shown, Estimate):
        word, effect = size_of(printed, shown, found[1:], resamples.times)
        size = replace(size, effect=effect, size=word if size.word == "holds" else "")
    return size


def _of_both(one: SizeVerdict, other: SizeVerdict) -> SizeVerdict:
    """A size on two GPUs of a model: words stand where both have them, intervals span both."""
    if LACKING in (one.word, other.word):
        return one if other.word == LACKING else other
    value, effect = _spanning(one.value, other.value), _spanning(one.effect, other.effect)
    one = replace(one, value=value, effect=effect)
    if one.word != other.word:
        reason = f"{one.word} on one GPU, {other.word} on another of the same model"
        return replace(one, word="unclear", size="", reason=reason)
    return one if one.size == other.size else replace(one, size="size unclear")


def _spanning(one: Any, other: Any) -> Any:
    if not (isinstance(one, Estimate) and isinstance(other, Estimate)):
        return one
    ends = [end for e in (one, other) for end in (e.value, e.low, e.high) if end is not None]
    return replace(one, low=min(ends), high=max(ends)) if len({*ends}) > 1 else one


def _evaluated(form: _Form, values: Values, exact: bool) -> list[tuple[Any, bool]]:
    """Value and truth in every resample, the run itself first; what is exact has the run alone."""
    results = []
    for resample in range(1 if exact else values.resamples.count):
        values.at = resample
        value = evaluate(form.expr, CLAIMS, values.names, values.functions)
        if isinstance(value, float) and not math.isfinite(value):
            raise StudyError(f"the formula `{form.expr.text}` has no finite value here")
        true = False
        if form.expect is not None:
            names = values.names | {"value": value}
            true = bool(evaluate(form.expect, CLAIMS, names, values.functions))
        results.append((value, true))
    return results


def _word(form: _Form, share: float, shown: Estimate | str) -> VerdictWord:
    """The first word at one size, from the share of resamples in which the claim is true."""
    low = high = math.nan
    if isinstance(shown, Estimate) and shown.low is not None and shown.high is not None:
        low, high = shown.low, shown.high
    margin = 1 + form.limits * DEFAULT_MARGIN
    if form.against_one and 1 / margin <= low <= high <= margin:
        return "no effect"
    if share >= HOLDS:
        return "holds"
    if share <= FAILS and not (low < form.band[0] and form.band[1] < high):
        return "fails"  # an interval on both sides of a band is too wide to tell
    return "unclear"


def _shown(form: _Form, found: Sequence[Any], resamples: Resamples, exact: bool) -> Estimate | str:
    """A number with the middle 95% of its resamples; anything else as text."""
    first = found[0]
    if isinstance(first, bool | str):
        text = first if isinstance(first, str) else _item(first)
        if len(found) == 1:
            return text
        share = float(np.dot([v == first for v in found[1:]], resamples.times) / RESAMPLES)
        return f"{text} (in {100 * share:.3g}% of the resamples)"
    if isinstance(first, list):
        names = form.listed if len(form.listed) == len(first) else [""] * len(first)
        parts = zip(names, first, strict=True)
        return ", ".join(f"{name}: {_item(v)}" if name else _item(v) for name, v in parts)
    value = float(first)
    if len(found) == 1:
        return Estimate(value, exact=exact)
    resampled = np.repeat(np.array(found[1:], dtype=float), resamples.times)
    low, high = np.percentile(resampled, (100 * FAILS, 100 * HOLDS))
    return Estimate(value, float(low), float(high), min(len(r) for r in resamples.rounds))


def _item(value: Any) -> str:
    """A truth value, or a number: a whole one with all its digits, to be compared with a count."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{float(value):.0f}" if float(value).is_integer() else f"{float(value):.4g}"


def _combine(found: Sequence[SizeVerdict]) -> tuple[VerdictWord, str]:
    """Over several sizes all must hold, and any failure fails.

    No effect at some size contradicts a sentence that claims one at every size.
    """
    words = {size.word for size in found}
    lacking = [s for s in found if s.word == LACKING]
    commands = [f"`{s.command}` measures it" for s in lacking if s.command]
    reasons = "; ".join([*grouped(s.reason for s in lacking if s.reason), *dict.fromkeys(commands)])
    if "fails" in words:
        return "fails", _where(found, "fails")
    if not words or words == {LACKING}:
        return LACKING, reasons or "no size to judge"
    if lacking:
        missing = ", ".join(str(s.n) for s in lacking if s.n is not None)
        return "unclear", f"not measured at N={missing}: {reasons}"
    if "unclear" in words:
        why = grouped(s.reason for s in found if s.reason)
        return "unclear", "; ".join(w for w in (_where(found, "unclear"), *why) if w)
    if words == {"no effect"}:
        return "no effect", f"within {DEFAULT_MARGIN:.0%} of 1"
    if "no effect" in words:
        return "fails", f"{_where(found, 'no effect')} (within {DEFAULT_MARGIN:.0%} of 1)"
    return "holds", ""


def _where(found: Sequence[SizeVerdict], word: VerdictWord) -> str:
    """At which sizes a word came out, where there are several."""
    sizes = ", ".join(str(s.n) for s in found if s.word == word)
    return f"{word} at N={sizes}" if len(found) > 1 else ""
