"""The gallery: a page for each paper, run and comparison of recorded runs, and their index.

Every page is one file. The index has the findings and the matrix of effects.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nqbench.analysis.claims.judge import ENUMERATED, Verdict
from nqbench.analysis.compare.request import compare_datasets
from nqbench.analysis.compare.wording import counted
from nqbench.analysis.data.collect import load_dataset
from nqbench.analysis.data.dataset import Dataset
from nqbench.analysis.matrix import short
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.report.comparison import title_of, write_comparison
from nqbench.report.exporters import HTML
from nqbench.report.matrix import ABLATION, add_effects
from nqbench.report.page import Bullets, Links, Page, Paragraph, unused
from nqbench.report.papers.write import CPU_BASELINE, observe_all, write_paper
from nqbench.report.writer import write_report
from nqbench.runs.layout import PLOTS, RESULTS, recorded_runs
from nqbench.runs.reading import read_manifest
from nqbench.system.files import shown_command
from nqbench.workloads import KERNEL

SITE: Final = PLOTS / "site"
INDEX: Final = "index"
Manifests = Mapping[Path, Mapping[str, Any]]
"""The manifest of each run."""
TITLE: Final = "nqbench: what each change to a GPU kernel is worth"
SECTIONS: Final = {
    "papers": "Papers, reproduced",
    ABLATION: "The ablation: every combination of four optimizations",
    "compare": "Architectures compared, measured and simulated",
    "frontier": "The fastest counter, trick by trick",
    "examples": "Examples: kernels of your own",
    "other": "Ceilings, baselines and checks",
}
"""Kinds of pages, in the order of the index."""
MIXED: Final = ("examples", "other")
"""Kinds of several studies: the index says what each is about."""
ABOUT: Final = (
    "Drawn from the records of {} runs, measured or simulated from {} to {}. Each page is one file,"
    " which holds its numbers, its figures and the commands that make them again."
)
PAGE_LINK: Final = re.compile(rf'href="([\w./-]+\.{HTML})"')


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the gallery, and what the index says about it.

    ``kind``  a key of ``SECTIONS``
    ``link``  its file, relative to the gallery
    """

    kind: str
    title: str
    link: str
    about: tuple[str, ...]


def write_site(out: Path = SITE, runs: Sequence[Path] = (), command: str = "") -> Iterator[Path]:
    """Write the gallery of runs, by default of every one under ``results/reference``.

    Yields each page as soon as it is written, the index last. Pages of an earlier gallery in the
    same folder that are not written again are removed. Raises ``StudyError`` if there is no run,
    ``StoreError`` (a run cannot be read, the folder cannot be written).
    """
    runs = list(runs) or recorded_runs("*", "reference")
    if not runs:
        raise StudyError(
            f"there is no run under {RESULTS}/reference; name runs, as in"
            f" `nqbench site {RESULTS}/local/sim-mini/quick`"
        )
    manifests = {run: read_manifest(run) for run in runs}
    entries: list[Entry] = []
    for make in (_papers, _reports, _comparisons):
        for entry in make(manifests, out):
            entries.append(entry)
            yield out / entry.link
    yield _index(manifests, out, command, entries)


def _home(link: str) -> str:
    """From a page of the gallery to the index."""
    return "../" * link.count("/") + f"{INDEX}.{HTML}"


def _place(run: Path) -> str:
    """The last two folders of a run, ``DEVICE/STUDY`` by custom."""
    return "/".join(run.resolve().parts[-2:])


def _study(manifest: Mapping[str, Any]) -> str:
    return str(manifest["study"]["name"])


def _runs(manifests: Manifests, study: str) -> list[Path]:
    return [run for run, manifest in manifests.items() if _study(manifest) == study]


def _one_per_device(manifests: Manifests, study: str) -> list[Path]:
    """The first run of a study on each device; one that was repeated is only compared."""
    found: dict[tuple[str, str], Path] = {}
    for run in _runs(manifests, study):
        device = manifests[run]["device"]
        named = device.get("identity", {}).get("name") or device.get("facts", {}).get("name")
        found.setdefault((device["spec"], str(named)), run)
    return list(found.values())


def _baseline(manifests: Manifests) -> Path | None:
    """The run whose CPU programs all papers share."""
    return next(iter(_runs(manifests, CPU_BASELINE)), None)


def _papers(manifests: Manifests, out: Path) -> Iterator[Entry]:
    for name in paper_names():
        if runs := _one_per_device(manifests, name):
            paper, link = load_paper(name), f"papers/{name}/paper.{HTML}"
            found = observe_all(runs, _baseline(manifests))
            report = write_paper(paper, found, (out / link).parent, (HTML,), home=_home(link))
            title = f"{short(paper)}: {paper.title}"
            about = tuple(_verdicts(report.verdicts)) or ("No claim could be tested",)
            yield Entry("papers", title, link, about)


def _verdicts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A sentence for each device: how many claims hold, fail, ..."""
    for device in dict.fromkeys(v.device for v in verdicts if v.device != ENUMERATED):
        words = Counter(v.word for v in verdicts if v.device == device)
        if words.total() == words["not measured"]:
            continue
        rest = ", ".join(f"{n} {word}" for word, n in words.most_common() if word != "holds")
        holds = f"{device}: {words['holds']} of {words.total()} claims hold"
        yield f"{holds}; {rest}" if rest else holds


def _reports(manifests: Manifests, out: Path) -> Iterator[Entry]:
    taken: set[str] = set()
    papers = paper_names()
    for run, manifest in manifests.items():
        if _study(manifest) in papers:
            continue
        folder = unused(_place(run), taken)
        taken.add(folder)
        link = f"{folder}/report.{HTML}"
        report = write_report([run], (out / link).parent, (HTML,), home=_home(link))
        title = f"{_study(manifest)}: {load_dataset(run).device}"
        kind = _kind(manifest)
        asked = str(manifest["study"].get("about") or "") if kind in MIXED else ""
        about = (*[asked] * bool(asked), *report.findings[:1])
        yield Entry(kind, title, link, about)


def _kind(manifest: Mapping[str, Any]) -> str:
    if _study(manifest) in SECTIONS:
        return _study(manifest)
    own = manifest["study"].get("workload", "").startswith(f"{KERNEL}:")
    return "examples" if own else "other"


def _comparisons(manifests: Manifests, out: Path) -> Iterator[Entry]:
    """Runs of one study on different devices, each with the first of them; simulated ones apart."""
    for name in dict.fromkeys(map(_study, manifests.values())):
        if len(runs := _runs(manifests, name)) < 2:
            continue
        found = {run: load_dataset(run) for run in runs}
        for simulated in (False, True):
            data = {run: one for run, one in found.items() if one.simulated == simulated}
            if len(data) > 1:
                folder = f"{name}-simulated" if simulated else name
                yield from _comparison(data, f"compare/{folder}/compare.{HTML}", out)


def _comparison(data: Mapping[Path, Dataset], link: str, out: Path) -> Iterator[Entry]:
    names, paths = list(map(_place, data)), list(data)
    command = shown_command(["nqbench", "compare", *map(str, data)])
    try:
        findings = compare_datasets([*data.values()], names, command=command, paths=paths)
    except (AnalysisError, StudyError):
        return  # no point in common, or of different kinds
    write_comparison(findings, (out / link).parent, (HTML,), home=_home(link))
    about = tuple(
        counted(comparison, section)
        for comparison in findings.comparisons
        for section in comparison.sections
        if not section.equal_everywhere
    )
    yield Entry("compare", title_of(findings), link, about)


def _index(manifests: Manifests, out: Path, command: str, entries: Sequence[Entry]) -> Path:
    page = Page(out, (HTML,))
    page.heading(TITLE, 1)
    dates = sorted(one.get("created", "")[:10] for one in manifests.values())
    page.add(Paragraph(ABOUT.format(len(manifests), dates[0], dates[-1])))
    for kind, title in SECTIONS.items():
        if mine := [entry for entry in entries if entry.kind == kind]:
            page.heading(title)
        for entry in mine:
            page.add(Links(((entry.title, entry.link),)), Bullets(entry.about))
    shown = [r for name in (*paper_names(), ABLATION) for r in _one_per_device(manifests, name)]
    with suppress(AnalysisError):  # no paper and no ablation among the runs
        add_effects(page, observe_all(shown, _baseline(manifests)), command)
    index = out / f"{INDEX}.{HTML}"
    stale = _linked(index) - {entry.link for entry in entries}
    page.write(INDEX)
    for link in stale:
        (out / link).unlink(missing_ok=True)
    return index


def _linked(index: Path) -> set[str]:
    """The pages that an earlier index links."""
    return set(PAGE_LINK.findall(index.read_text(encoding="utf-8"))) if index.exists() else set()
