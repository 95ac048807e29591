"""The gallery: a page for each paper, run and comparison of recorded runs, and their index.

Every page is one file. The index has a tile for each, with question and answer, and the matrix of
effects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from nqbench.analysis.answer import Answer
from nqbench.analysis.compare import wording
from nqbench.analysis.compare.request import compare_datasets
from nqbench.analysis.data.dataset import Dataset, load_dataset
from nqbench.analysis.data.estimate import NOTEWORTHY
from nqbench.analysis.data.for_papers import with_baseline, with_others
from nqbench.analysis.findings import findings
from nqbench.analysis.matrix import short
from nqbench.analysis.wording import amount
from nqbench.errors import AnalysisError, StudyError
from nqbench.papers import load_paper, paper_names
from nqbench.report.comparison import title_of, write_comparison
from nqbench.report.exporters import HTML, templates
from nqbench.report.matrix import ABLATION, add_effects
from nqbench.report.page import Page, Paragraph, Tile, Tiles, unused
from nqbench.report.papers.write import CPU_BASELINE, write_paper
from nqbench.report.writer import write_report
from nqbench.runs.reading import PLOTS, RESULTS, recorded_runs
from nqbench.system.files import shown_command, shown_path
from nqbench.workloads import KERNEL

SITE: Final = PLOTS / "site"
INDEX: Final = "index"
GalleryRuns = Mapping[Path, Answer]
"""The runs of the gallery, by folder."""
SECTIONS: Final = {
    "papers": "Papers, run again",
    ABLATION: "The ablation: every combination of four optimizations",
    "compare": "Compared: other devices, other runs",
    "frontier": "The fastest counter, trick by trick",
    "examples": "Kernels of your own",
    "other": "Other studies",
}
"""Kinds of pages, in the order of the index."""
ABOUT: Final = (
    "Each page is one file: its numbers, its figures, and the commands that make them again."
)
NAMED: Final = 3
"""Runs that the title names; of more it says how many there are."""
SHOWN: Final = 2
"""Sentences on a tile."""
WIDTH, HEIGHT, RADIUS = 300, 70, 2.4
"""Of a thumbnail and its dots, in points."""


def write_site(out: Path = SITE, runs: Sequence[Path] = (), command: str = "") -> Iterator[Path]:
    """Write the gallery of runs, by default of every one under ``results/reference``.

    Yields each page as soon as it is written, the index last. Raises ``StudyError`` if there is no
    run, ``StoreError`` (a run cannot be read, the folder cannot be written).
    """
    paths = list(runs) or recorded_runs("*", "reference")
    if not paths:
        raise StudyError(
            f"there is no run under {RESULTS}/reference; name runs, as in"
            f" `nqbench report --site {RESULTS}/local/sim-mini/quick`"
        )
    read = {path: Answer(load_dataset(path)) for path in paths}
    tiles: list[Tile] = []
    for make in (_papers, _reports, _comparisons):
        for tile in make(read, out):
            tiles.append(tile)
            yield out / tile.target
    yield _index(read, out, command, tiles)


def _home(link: str) -> str:
    """From a page of the gallery to the index."""
    return "../" * link.count("/") + f"{INDEX}.{HTML}"


def _place(run: Path) -> str:
    """The last two folders of a run, ``DEVICE/STUDY`` by custom."""
    return "/".join(run.resolve().parts[-2:])


def _observed(runs: GalleryRuns, *studies: str) -> list[Dataset]:
    """The first run of each study on each device with those of other GPUs of its model, and with
    the CPU programs that all papers share."""
    shared = (run.data for run in runs.values() if run.data.name == CPU_BASELINE)
    baseline = next(shared, None)
    found: dict[tuple[str, str], list[Dataset]] = {}
    for study in studies:
        for run in (run for run in runs.values() if run.data.name == study):
            found.setdefault((study, run.data.device), []).append(with_baseline(run.data, baseline))
    return [with_others(first, others) for first, *others in found.values()]


def _papers(runs: GalleryRuns, out: Path) -> Iterator[Tile]:
    for name in paper_names():
        if found := _observed(runs, name):
            paper, link = load_paper(name), f"papers/{name}/paper.{HTML}"
            report = write_paper(paper, found, (out / link).parent, (HTML,), home=_home(link))
            title = f"{short(paper)}: {paper.title}"
            yield Tile("papers", title, link, texts=(report.card.outcome,))


def _reports(runs: GalleryRuns, out: Path) -> Iterator[Tile]:
    taken: set[str] = set()
    for path, run in runs.items():
        data = run.data
        if data.name in paper_names():
            continue
        link = f"{unused(_place(path), taken)}/report.{HTML}"
        write_report(run, (out / link).parent, (HTML,), home=_home(link))
        kind = data.name
        if kind not in SECTIONS:
            own = str(data.study.get("workload", "")).startswith(f"{KERNEL}:")
            kind = "examples" if own else "other"
        title, figure = (f"{data.name} on {data.chip}", thumbnail(run, f"thumbnail-{len(taken)}"))
        said = tuple(findings(run)[:1])
        if data.name == "selftest":  # its sweeps hold the same kernels twice
            with suppress(AnalysisError, StudyError):
                said = tuple(wording.verdicts(compare_datasets([data], by="sweep=a,b")))
        yield Tile(kind, title, link, data.provenance, run.question, said, figure)


def thumbnail(answer: Answer, name: str) -> str:
    """The ranking of the sweep that answers, in little: a dot for each point from the best to the
    worst, its height the logarithm; ``name`` is its id. Empty where there is nothing to rank."""
    ranked = answer.ranked
    if len(ranked) < 3:
        return ""
    what = answer.telling[0]
    heights = [math.log1p(max(p.value(what), 0) * (1e9 if what.unit else 1)) for p in ranked]
    low, high = min(heights), max(heights)
    if high - low < math.log(NOTEWORTHY):
        return ""
    step = (WIDTH - 4 * RADIUS) / (len(ranked) - 1)
    falls = [(HEIGHT - 18) * (value - low) / (high - low) for value in heights]
    dots = [(2 * RADIUS + i * step, HEIGHT - 8 - fall) for i, fall in enumerate(falls)]
    best, worst = (amount(p.value(what), what) for p in (ranked[0], ranked[-1]))
    size = {"width": WIDTH, "height": HEIGHT, "radius": RADIUS}
    known = {"best": best, "worst": worst, "count": len(ranked), "plain": what.plain}
    return templates().get_template("thumbnail.html").render(name=name, dots=dots, **size, **known)


def _comparisons(runs: GalleryRuns, out: Path) -> Iterator[Tile]:
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
            command = shown_command(["nqbench", "compare", *map(shown_path, found)])
            try:
                findings = compare_datasets(data, names, command=command)
            except (AnalysisError, StudyError):
                continue  # no point in common, or of different kinds
            write_comparison(findings, (out / link).parent, (HTML,), home=_home(link))
            label = "simulated" if simulated else "measured"
            said = tuple(wording.verdicts(findings)[:SHOWN])
            yield Tile("compare", title_of(findings), link, label, "", said)


def _index(runs: GalleryRuns, out: Path, command: str, tiles: Sequence[Tile]) -> Path:
    page = Page(out, (HTML,))
    named = [f"{run.data.name} on {run.data.chip}" for run in runs.values()]
    title = ", ".join(named) if len(named) <= NAMED else f"{len(named)} recorded runs"
    page.heading(title, 1, short="All pages")
    dates = sorted(run.data.manifest.get("created", "")[:10] for run in runs.values())
    when = f"on {dates[0]}" if dates[0] == dates[-1] else f"from {dates[0]} to {dates[-1]}"
    page.add(Paragraph(f"Measured or simulated {when}. {ABOUT}"))
    for kind, heading in SECTIONS.items():
        if mine := tuple(tile for tile in tiles if tile.kind == kind):
            page.heading(heading)
            page.add(Tiles(mine))
    with suppress(AnalysisError):  # no paper and no ablation among the runs
        add_effects(page, _observed(runs, *paper_names(), ABLATION), command)
    return page.write(INDEX)[0]
