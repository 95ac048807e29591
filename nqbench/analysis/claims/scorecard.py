"""The scorecard of a paper: what its abstract and conclusion claim, the paper's number, ours, the
verdict, and how robust it is. Pages and terminal show the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nqbench.analysis.claims.judge import ENUMERATED, LACKING, SizeVerdict, Verdict, judge
from nqbench.analysis.claims.robust import robust
from nqbench.analysis.data.dataset import Dataset, chip
from nqbench.analysis.data.estimate import Estimate
from nqbench.analysis.data.for_papers import device_names
from nqbench.analysis.wording import factor, measured, times, times_as_fast
from nqbench.papers.schema import Claim, Headline, Paper
from nqbench.system.suggest import listing, many

DIFFERS: Final = "differs"
"""In the place of the first word of a verdict where runs have several."""
SAID: Final = {
    "holds": ("holds", "hold"),
    DIFFERS: ("depends on the run", "depend on the run"),
    "no effect": ("shows no effect", "show no effect"),
    "fails": ("fails", "fail"),
    "unclear": ("is unclear", "are unclear"),
    LACKING: ("is not measured", "are not measured"),
}
"""How a sentence says the words, of one claim and of several; their order is that of the rows."""


@dataclass(frozen=True, slots=True)
class Score:
    """A claim of the scorecard.

    ``verdicts``  by the name of the run; without those where nothing was measured
    ``reason``    why nothing was measured
    ``robust``    for each other way to judge it: what the word is there, empty where it stays
    """

    paper: Paper
    claim: Claim
    headline: Headline
    verdicts: Mapping[str, Verdict]
    reason: str
    robust: Sequence[str] = ()

    @property
    def word(self) -> str:
        """A key of :data:`SAID`."""
        words = {verdict.word for verdict in self.verdicts.values()}
        return next(iter(words), LACKING) if len(words) < 2 else DIFFERS

    @property
    def verdict(self) -> str:
        """Both words, with the device where they differ."""
        texts = {
            name: ", ".join(filter(None, (v.word, v.size))) + "*" * bool(v.asked_of)
            for name, v in self.verdicts.items()
        }
        return _by_text(texts)

    @property
    def n(self) -> int | None:
        """The size of the numbers; ``None`` where they have none, or one each."""
        sizes = {_decisive(verdict).n for verdict in self.verdicts.values()}
        return next(iter(sizes)) if len(sizes) == 1 else None

    @property
    def printed(self) -> str:
        """The paper's number, its size if that is not the one of the row, and its GPU if there is
        a number for each."""
        by_device = self.paper.by_device(self.claim)
        if by_device:
            chips = {name: chip(self.paper.device(name).name) for name in by_device}
            return "; ".join(f"{self._number(v)} ({chips[d]})" for d, v in by_device.items())
        sizes = dict.fromkeys(_decisive(v).n for v in self.verdicts.values())
        own = [n for n in sizes if n is None or n in self.claim.n] or self.claim.n[-1:]
        found = ((n, self.claim.published(n)) for n in own)
        texts = [self._number(text) + self._at(n) for n, text in found if text]
        said = self._reads if self._reads in ("faster", "slower") else "in words"
        return "; ".join(dict.fromkeys(texts)) or said

    @property
    def chips(self) -> str:
        """The GPUs of the paper's number; empty if it names them itself."""
        cards = [self.paper.device(name) for name in self.claim.hardware]
        named = self.paper.by_device(self.claim)
        return ", ".join(chip(c.name) for c in cards if c.kind == "gpu" and not named)

    def here(self, *, spread: bool = True) -> str:
        """Our numbers with their device where several differ, with intervals if asked for
        ``spread``, and their size."""
        texts = {}
        for name, verdict in self.verdicts.items():
            size = _decisive(verdict)
            value = size.value
            if isinstance(value, Estimate) and not spread:
                value = Estimate(value.value)
            texts[name] = self._value(value) + self._at(size.n)
        return _by_text(texts) + (f", N = {self.n:,}" if self.n else "")

    @property
    def kept(self) -> str:
        """Whether the word stays where it is judged again in other ways: in how many, and the first
        in which it does not."""
        if any(verdict.device == ENUMERATED for verdict in self.verdicts.values()):
            return "exact count"
        if not self.robust:
            return ""
        ways, lost = len(self.robust), [text for text in self.robust if text]
        stays = f"{ways - len(lost)} of {ways}"
        return f"fragile: {stays}; {lost[0]}" if lost else f"robust: {stays}"

    def _at(self, n: int | None) -> str:
        return f" at N = {n:,}" if n and n != self.n else ""

    def _number(self, text: str) -> str:
        """A printed number in our notation, with its digits; several as their range."""
        try:
            least, *_, largest = sorted(text.split(", "), key=float) * 2
            if least != largest:
                return f"{least} to {self._number(largest)}"
            value = float(text)
        except ValueError:
            return text
        if self._reads == "share":
            return f"{100 * value:.4g}%"
        if self._reads in ("", "times"):
            return f"{text}x" if self._reads else f"{text}{self._unit}"
        other = {"faster": "slower", "slower": "faster"}[self._reads]
        return f"{text}x {self._reads}" if value >= 1 else f"{factor(1 / value)} {other}"

    def _value(self, value: Estimate | str | None) -> str:
        if isinstance(value, Estimate):
            match self._reads:
                case "faster":
                    return times_as_fast(value)
                case "slower":
                    return times_as_fast(value.inverse())
                case "times":
                    return times(value)
                case "share":
                    return f"{100 * value.value:.4g}%"
        return "no number" if value is None else measured(value, self._unit)

    @property
    def _reads(self) -> str:
        """What the value is: times ``faster``, ``slower`` or ``times``, a ``share``, or empty."""
        by_kind = {"ratio": "faster", "share": "share"} if not self.claim.unit else {}
        return self.headline.reads or by_kind.get(self.claim.kind, "")

    @property
    def _unit(self) -> str:
        unit = self.claim.unit
        return "%" if unit == "percent" else f" {unit}" * bool(unit)


@dataclass(frozen=True, slots=True)
class Scorecard:
    """The rows, those that hold first, and the names of the runs that have numbers."""

    paper: Paper
    rows: tuple[Score, ...]
    names: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """One sentence: how many of the main claims hold, and which do not."""
        groups: dict[str, list[Score]] = {}
        for row in self.rows:
            groups.setdefault(row.word, []).append(row)
        parts = []
        for word in filter(groups.__contains__, SAID):
            found = groups[word]
            said = [row.headline.label for row in found if word not in ("holds", LACKING)]
            for size in ("stronger", "weaker") if word == "holds" else ():
                own = [r for r in found if {v.size for v in r.verdicts.values()} == {size}]
                said += [f"{size}: {', '.join(r.headline.label for r in own)}"] * bool(own)
            count = f"{len(found)} {SAID[word][len(found) > 1]}"
            parts.append(f"{count} ({'; '.join(said)})" if said else count)
        where = f"On {listing(self.names, 'and')}, of" if self.names else "Of"
        return f"{where} {many(len(self.rows), 'main claim')} {listing(parts, 'and')}."

    @property
    def missing(self) -> tuple[str, ...]:
        """A line on the claims that no run measured, and on those that a run alone did not."""
        total = many(len(self.rows), "main claim")
        lacking = [row for row in self.rows if row.word == LACKING]
        said = [f"not measured: {len(lacking)} of {total}: {row.headline.label} ({row.reason})"
                for row in lacking[:1]]  # fmt: skip
        for name in self.names:
            others = sum(name not in row.verdicts and row.word != LACKING for row in self.rows)
            said += [f"not measured on {name}: {others} of {total}"] * bool(others)
        return tuple(said)


def scorecard(paper: Paper, runs: Sequence[Dataset], beside: Sequence[Dataset] = ()) -> Scorecard:
    """The scorecard of runs; simulated ones count where no other run is given.

    ``beside``  recorded runs that are shown as well
    """
    own = [run for run in runs if not run.simulated] or runs
    every = sorted([*beside, *own], key=lambda run: run.simulated)
    chips = [
        f"{chip(paper.device(run.hardware(paper)).name)}, modelled"
        if run.modelled
        else _name(run, own, beside)
        for run in every
    ]
    names = dict(zip(device_names(every), chips, strict=True))
    main = paper.model_copy(update={"claims": [c for c in paper.claims if c.headline]})
    judged: dict[str, dict[str, Verdict]] = {}
    reasons: dict[str, str] = {}
    for verdict in judge(main, every):
        if verdict.word == LACKING:
            reasons.setdefault(verdict.claim.id, verdict.reason)
        else:  # what is about no run, or about all of them, stands with the first
            name = names.get(verdict.device, chips[0])
            judged.setdefault(verdict.claim.id, {})[name] = verdict
    kept: dict[str, list[str]] = {claim.id: [] for claim in main.claims}
    for run, name in zip(every, chips, strict=True):
        usual = [own[name] for own in judged.values() if name in own]
        for claim_id, found in robust(main, run, usual, name).items():
            kept[claim_id] += found
    rows = [
        Score(
            *(paper, claim, claim.headline, judged.get(claim.id, {})),
            *(reasons.get(claim.id, ""), kept[claim.id]),
        )
        for claim in main.claims
        if claim.headline
    ]
    rows.sort(key=lambda row: [*SAID].index(row.word))
    shown = [name for name in dict.fromkeys(chips) if any(name in row.verdicts for row in rows)]
    return Scorecard(paper, tuple(rows), tuple(shown))


def _name(run: Dataset, own: Sequence[Dataset], beside: Sequence[Dataset]) -> str:
    """The device of a run, with its folder where a run like it has the same."""
    mine, theirs = ([r.chip for r in runs] for runs in (own, beside))
    name, (like, others) = run.chip, (mine, theirs) if run in own else (theirs, mine)
    if like.count(name) > 1:
        return f"{name} ({run.path.as_posix()})"
    return f"{name} here" if run in own and name in others else name


def _decisive(verdict: Verdict) -> SizeVerdict:
    """The largest size with the word of the claim."""
    own = [size for size in verdict.sizes if size.word == verdict.word]
    return (own or [*verdict.sizes])[-1]


def _by_text(texts: Mapping[str, str]) -> str:
    """Each text once, with the names that it is of where there are several."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    if len(groups) < 2:
        return next(iter(groups), "")
    return "; ".join(f"{text} ({', '.join(names)})" for text, names in groups.items())
