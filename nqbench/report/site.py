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
from nqbench.analysis.compare.wording import sentences
from nqbench.analysis.data.collect import load_dataset
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.report.comparison import write_comparison
from nqbench.report.exporters import HTML
from nqbench.report.matrix import ABLATION, add_effects
from nqbench.report.page import Bullets, Links, Page, Paragraph
from nqbench.report.papers.write import CPU_BASELINE, observe_all, write_paper
from nqbench.report.writer import write_report
from nqbench.runs.layout import PLOTS, RESULTS, recorded_runs
from nqbench.runs.reading import read_manifest
from nqbench.workloads import KERNEL

SITE: Final = PLOTS / "site"
INDEX: Final = "index"
Studies = Mapping[Path, Mapping[str, Any]]
"""The study of each run, as its manifest has it."""
TITLE: Final = "nqbench: what each change to a GPU kernel is worth"
SECTIONS: Final = {
    "papers": "Papers, reproduced",
    ABLATION: "The ablation: every combination of four optimizations",
    "compare": "GPUs compared",
    "frontier": "The fastest counter, trick by trick",
    "examples": "Examples: kernels of your own",
    "other": "Ceilings, baselines and checks",
}
"""Kinds of pages, in the order of the index."""
ABOUT: Final = (
    "Pages drawn from the records of {} runs. Each page is one file, which holds its numbers,"
    " figures and the commands that make it again"
)
PAGE_LINK: Final = re.compile(rf'href="([\w./-]+\.{HTML})"')
WANTED: Final = 3
"""Sentences about a page on the index."""


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
        raise StudyError(f"there is no run under {RESULTS}/reference; name runs")
    studies = {run: read_manifest(run)["study"] for run in runs}
    entries: list[Entry] = []
    for make in (_papers, _reports, _comparisons):
        for entry in make(studies, out):
            entries.append(entry)
            yield out / entry.link
    yield _index(studies, out, command, entries)


def _home(link: str) -> str:
    """From a page of the gallery to the index."""
    return "../" * link.count("/") + f"{INDEX}.{HTML}"


def _baseline(studies: Studies) -> Path | None:
    """The run whose CPU programs all papers share."""
    return next((run for run, study in studies.items() if study["name"] == CPU_BASELINE), None)


def _papers(studies: Studies, out: Path) -> Iterator[Entry]:
    for name in paper_names():
        if runs := [run for run in studies if run.name == name]:
            paper, link = load_paper(name), f"papers/{name}/paper.{HTML}"
            found = observe_all(runs, _baseline(studies))
            folder = (out / link).parent
            report = write_paper(paper, found, folder, (HTML,), home=_home(link))
            yield Entry("papers", paper.title, link, tuple(_counted(report.verdicts)))


def _counted(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A sentence for each device: how many claims hold, fail, ..."""
    for device in dict.fromkeys(v.device for v in verdicts if v.device != ENUMERATED):
        words = Counter(v.word for v in verdicts if v.device == device)
        counts = ", ".join(f"{number} {word}" for word, number in words.most_common())
        yield f"{words.total()} claims on {device}: {counts}"


def _reports(studies: Studies, out: Path) -> Iterator[Entry]:
    papers = paper_names()
    for run, study in studies.items():
        if study["name"] in papers:
            continue
        link = f"{run.parent.name}/{run.name}/report.{HTML}"
        report = write_report([run], (out / link).parent, (HTML,), home=_home(link))
        title = f"{study['name']}: {load_dataset(run).device}"
        yield Entry(_kind(study), title, link, report.findings[:WANTED])


def _kind(study: Mapping[str, Any]) -> str:
    if study["name"] in SECTIONS:
        return str(study["name"])
    return "examples" if study["workload"].startswith(f"{KERNEL}:") else "other"


def _comparisons(studies: Studies, out: Path) -> Iterator[Entry]:
    """Runs of one study on different GPUs, each with the first of them."""
    for name in dict.fromkeys(study["name"] for study in studies.values()):
        runs = [run for run, study in studies.items() if study["name"] == name]
        found = {run: data for run in runs if not (data := load_dataset(run)).simulated}
        if len(found) < 2:
            continue
        command = f"nqbench compare {' '.join(run.as_posix() for run in found)}"
        names, paths = [run.as_posix() for run in found], list(found)
        try:
            findings = compare_datasets([*found.values()], names, command=command, paths=paths)
        except AnalysisError:
            continue  # no point in common
        link = f"compare/{name}/compare.{HTML}"
        write_comparison(findings, (out / link).parent, (HTML,), home=_home(link))
        compared = " and ".join(dict.fromkeys(data.device for data in found.values()))
        yield Entry("compare", f"{name}: {compared}", link, tuple(sentences(findings)[:WANTED]))


def _index(studies: Studies, out: Path, command: str, entries: Sequence[Entry]) -> Path:
    page = Page(out, (HTML,))
    page.heading(TITLE, 1)
    page.add(Paragraph(ABOUT.format(len(studies))))
    for kind, title in SECTIONS.items():
        if mine := [entry for entry in entries if entry.kind == kind]:
            page.heading(title)
        for entry in mine:
            page.add(Links(((entry.title, entry.link),)), Bullets(entry.about))
    shown = [run for run in studies if run.name in (*paper_names(), ABLATION)]
    with suppress(AnalysisError):  # no paper and no ablation among the runs
        add_effects(page, observe_all(shown, _baseline(studies)), command)
    index = out / f"{INDEX}.{HTML}"
    stale = _linked(index) - {entry.link for entry in entries}
    page.write(INDEX)
    for link in stale:
        (out / link).unlink(missing_ok=True)
    return index


def _linked(index: Path) -> set[str]:
    """The pages that an earlier index links."""
    return set(PAGE_LINK.findall(index.read_text(encoding="utf-8"))) if index.exists() else set()
