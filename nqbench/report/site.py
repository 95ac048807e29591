"""The gallery: a page for each paper, run and comparison of recorded runs, and their index.

Every page is one file. The index has the findings and the matrix of effects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.analysis.compare import wording
from nqbench.analysis.compare.request import compare_datasets
from nqbench.analysis.data.observed import Observed, with_baseline
from nqbench.analysis.matrix import short
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.report.comparison import title_of, write_comparison
from nqbench.report.exporters import HTML
from nqbench.report.items import ReadRun, read_run
from nqbench.report.matrix import ABLATION, add_effects
from nqbench.report.page import Bullets, Link, Page, Paragraph, unused
from nqbench.report.papers.verdicts import counted
from nqbench.report.papers.write import CPU_BASELINE, write_paper
from nqbench.report.writer import write_report
from nqbench.runs.reading import PLOTS, RESULTS, recorded_runs
from nqbench.system.files import shown_command
from nqbench.workloads import KERNEL

SITE: Final = PLOTS / "site"
INDEX: Final = "index"
GalleryRuns = Mapping[Path, ReadRun]
"""The runs of the gallery, by folder."""
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
class GalleryEntry:
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
    paths = list(runs) or recorded_runs("*", "reference")
    if not paths:
        raise StudyError(
            f"there is no run under {RESULTS}/reference; name runs, as in"
            f" `nqbench report --site {RESULTS}/local/sim-mini/quick`"
        )
    read = {path: read_run(path) for path in paths}
    entries: list[GalleryEntry] = []
    for make in (_papers, _reports, _comparisons):
        for entry in make(read, out):
            entries.append(entry)
            yield out / entry.link
    yield _index(read, out, command, entries)


def _home(link: str) -> str:
    """From a page of the gallery to the index."""
    return "../" * link.count("/") + f"{INDEX}.{HTML}"


def _place(run: Path) -> str:
    """The last two folders of a run, ``DEVICE/STUDY`` by custom."""
    return "/".join(run.resolve().parts[-2:])


def _observed(runs: GalleryRuns, *studies: str) -> list[Observed]:
    """The first run of each study on each device, with the CPU programs that all papers share; a
    run that was repeated is only compared."""
    found: dict[tuple[str, str], Observed] = {}
    for study in studies:
        for run in runs.values():
            if run.data.name == study:
                found.setdefault((study, run.data.device), run.observed)
    shared = (run.observed for run in runs.values() if run.data.name == CPU_BASELINE)
    baseline = next(shared, None)
    return [with_baseline(run, baseline) for run in found.values()]


def _papers(runs: GalleryRuns, out: Path) -> Iterator[GalleryEntry]:
    for name in paper_names():
        if found := _observed(runs, name):
            paper, link = load_paper(name), f"papers/{name}/paper.{HTML}"
            report = write_paper(paper, found, (out / link).parent, (HTML,), home=_home(link))
            title = f"{short(paper)}: {paper.title}"
            yield GalleryEntry("papers", title, link, counted(report.verdicts))


def _reports(runs: GalleryRuns, out: Path) -> Iterator[GalleryEntry]:
    taken: set[str] = set()
    for path, run in runs.items():
        data = run.data
        if data.name in paper_names():
            continue
        folder = unused(_place(path), taken)
        link = f"{folder}/report.{HTML}"
        write_report([run], (out / link).parent, (HTML,), home=_home(link))
        kind = data.name
        if kind not in SECTIONS:
            own = str(data.study.get("workload", "")).startswith(f"{KERNEL}:")
            kind = "examples" if own else "other"
        asked = str(data.study.get("about") or "") if kind in MIXED else ""
        about = (*[asked] * bool(asked), *run.findings[:1])
        yield GalleryEntry(kind, f"{data.name}: {data.device}", link, about)


def _comparisons(runs: GalleryRuns, out: Path) -> Iterator[GalleryEntry]:
    """Runs of one study on different devices, each with the first of them; simulated ones apart."""
    for name in dict.fromkeys(run.data.name for run in runs.values()):
        for simulated in (False, True):
            found = {
                path: run
                for path, run in runs.items()
                if run.data.name == name and run.data.simulated == simulated
            }
            if len(found) < 2:
                continue
            link = f"compare/{name}{'-simulated' if simulated else ''}/compare.{HTML}"
            data, names = [run.data for run in found.values()], list(map(_place, found))
            command = shown_command(["nqbench", "compare", *map(str, found)])
            try:
                findings = compare_datasets(data, names, command=command)
            except (AnalysisError, StudyError):
                continue  # no point in common, or of different kinds
            write_comparison(findings, (out / link).parent, (HTML,), home=_home(link))
            about = tuple(wording.verdicts(findings))
            yield GalleryEntry("compare", title_of(findings), link, about)


def _index(runs: GalleryRuns, out: Path, command: str, entries: Sequence[GalleryEntry]) -> Path:
    page = Page(out, (HTML,))
    page.heading(TITLE, 1)
    dates = sorted(run.data.manifest.get("created", "")[:10] for run in runs.values())
    page.add(Paragraph(ABOUT.format(len(runs), dates[0], dates[-1])))
    for kind, title in SECTIONS.items():
        if mine := [entry for entry in entries if entry.kind == kind]:
            page.heading(title)
        for entry in mine:
            page.add(Link(entry.title, entry.link), Bullets(entry.about))
    with suppress(AnalysisError):  # no paper and no ablation among the runs
        add_effects(page, _observed(runs, *paper_names(), ABLATION), command)
    index, stale = out / f"{INDEX}.{HTML}", set()
    if index.exists():  # the pages that an earlier index links
        stale = set(PAGE_LINK.findall(index.read_text(encoding="utf-8")))
    page.write(INDEX)
    for link in stale - {entry.link for entry in entries}:
        (out / link).unlink(missing_ok=True)
    return index
