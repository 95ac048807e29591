"""nqbench as a library: what the commands do, as functions that print nothing.

A study may be a file, the name of one that comes with nqbench, a dictionary of the same form, or
what :func:`load_study` returns. Every error is an ``NqbenchError`` with one sentence, see
``nqbench.errors``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nqbench.analysis import frames
from nqbench.analysis.data.estimate import DEFAULT_MARGIN
from nqbench.errors import StudyError
from nqbench.measure import launch as launching
from nqbench.measure.launch import SYSTEM, Launched
from nqbench.runs.frame import load as load
from nqbench.study import Study, duration_s, load_study
from nqbench.study import expand as expand_study
from nqbench.system.files import from_here, printable
from nqbench.workloads.base import KERNEL, Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from nqbench.analysis.answer import Answer
    from nqbench.analysis.compare.request import Findings
    from nqbench.device import Device
    from nqbench.facts import DeviceFacts
    from nqbench.inspection import Checked
    from nqbench.measure.run_state import Listener, RunOutcome
    from nqbench.point import FactorLevels, Level, Point
    from nqbench.record import Record
    from nqbench.report.explain import Explained
    from nqbench.report.writer import RunReport

    Levels = Level | Sequence[Level]

StudyLike = Study | Mapping[str, Any] | Path | str


class Run:
    """A recorded run: its folder, and its records as tables.

    ``path``     the run folder
    ``outcome``  what :func:`run` returned (counts by status, failures, skipped points); ``None``
                 for a run that was recorded before
    """

    def __init__(self, path: Path | str, outcome: RunOutcome | None = None) -> None:
        """Open a run folder. Raises ``StoreError`` if it is not one."""
        from nqbench.runs.reading import read_manifest

        self.path = Path(path)
        self.outcome = outcome
        read_manifest(self.path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every measurement: all samples, counters, the checked answer. Raises ``StoreError``."""
        from nqbench.runs.reading import read_records

        return read_records(self.path).records

    def table(self, value: str | None = None) -> pd.DataFrame:
        """One row per point: sweep, system, label, factors, values with their intervals, status.

        ``value`` names one quantity (``time``, a phase, a counter, a metric of the study); by
        default these are the kernel time, or the usual counters of a simulated run (whole numbers),
        and every metric. A time is in seconds and has three columns: ``time_s``, and ``time_s_low``
        and ``time_s_high``, its 95% interval over the rounds (NaN of a single round). A factor with
        the name of another column is called ``factor_NAME``. ``system`` is left out where no point
        has one.

        Raises ``StoreError`` for a damaged run, ``AnalysisError`` for an unknown quantity.
        """
        return frames.points_table(self._answer().data, value)

    def effects(self, sweep: str | None = None, value: str | None = None) -> pd.DataFrame:
        """Main effects: one row per sweep, quantity, size, factor and pair of levels.

        ``to_over_from`` is the mean of the quantity at the level ``to`` over that at ``from``,
        between points that are equal in every other factor: 0.5 is half the time. ``low`` and
        ``high`` are its 95% interval (NaN: there is none). ``sweep`` restricts it to one sweep,
        ``value`` to one quantity.

        Raises ``AnalysisError`` for an unknown sweep and where nothing can be compared,
        ``StoreError`` for a damaged run.
        """
        return frames.effects_table(self._answer().data, sweep, value)

    def best(self, sweep: str | None = None, value: str | None = None) -> pd.DataFrame:
        """The best point of each sweep at its largest size, a row per quantity that tells points
        apart: its factors, its ``value`` (a time in seconds), and what it gains.

        ``times_better_than_default``, ``..._worst`` and ``..._next`` are ratios above 1 where it is
        better than the point with the first level of every factor, the worst point, the runner-up
        (NaN: there is none). ``text`` says it in words. ``sweep`` and ``value`` as in ``effects``.

        Raises ``AnalysisError`` for an unknown sweep or quantity, ``StoreError`` for a damaged run.
        """
        return frames.best_table(self._answer(), sweep, value)

    def plot(self, sweep: str | None = None, value: str | None = None) -> Figure:
        """All points of a sweep at its largest size, sorted, beside their levels: a matplotlib
        figure, 9 inches wide. ``sweep`` is by default the one that crosses most factors, ``value``
        the quantity that the run answers in first.

        Raises ``AnalysisError`` where nothing can be drawn, ``StoreError`` for a damaged run.
        """
        from nqbench.report.figures.ranking import ranking
        from nqbench.report.figures.style import styled
        from nqbench.study import ReportItem

        answer = self._answer()
        first = value or next((what.name for what in answer.quantities), None)
        item = ReportItem("figure", "ranking", of=sweep or answer.sweep, value=first)
        with styled():
            return ranking(answer.data, item)[-1]().figure

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings, the best points, what each change does."""
        return frames.run_html(self._answer())

    def report(self, out: Path | str | None = None, formats: Sequence[str] | str = ()) -> RunReport:
        """Write the tables and figures that the study asks for, and the page that links them.

        ``out`` is a folder, by default the one that ``nqbench report`` takes; ``formats`` are
        ``md``, ``csv`` (these by default) and ``tex`` for tables, ``svg`` (by default), ``pdf`` and
        ``png`` for figures, ``html`` for a page in one file. Returns the files, the page first, and
        a sentence for each item that could not be made.

        Raises ``StudyError`` for an unknown format, ``StoreError`` where the folder refuses.
        """
        from nqbench.report.writer import write_report

        chosen = [formats] if isinstance(formats, str) else formats
        return write_report(self._answer(), Path(out) if out else None, chosen)

    def _answer(self) -> Answer:
        from nqbench.analysis.answer import Answer
        from nqbench.analysis.data.dataset import load_dataset

        return Answer(load_dataset(self.path))


def run(
    study: StudyLike,
    device: str = "auto",
    out: Path | str | None = None,
    *,
    fresh: bool = False,
    budget: float | str | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure a study on a device, or resume its run.

    ``out`` is the run folder, by default ``results/local/DEVICE/STUDY``; ``fresh`` starts over (the
    old records are kept aside). ``budget`` is the time for the whole run, in seconds or as a study
    writes it (``"10m"``). ``listener`` receives progress, see ``nqbench.measure.run_state``.

    Failed points are listed in ``Run.outcome`` and raise nothing. Raises ``StudyError`` for a wrong
    study, ``DeviceUnavailable`` or ``FolderRefused`` before anything is measured, ``DeviceError``
    if the device is lost. ``KeyboardInterrupt`` passes on; what was measured is kept.
    """
    from nqbench.devices.registry import choose_device

    loaded = _study(study)
    spec = choose_device(loaded.device(_named(device))).spec
    words = ["nqbench", "run", from_here(printable(loaded.path)), "--device", spec]
    command = ["nqbench.run", loaded.name, spec] if loaded.source.in_memory else words
    outcome = measured(loaded, spec, command, out, fresh=fresh, budget=budget, listener=listener)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return Run(outcome.path, outcome)


def measured(
    study: Study,
    spec: str,
    command: Sequence[str],
    out: Path | str | None = None,
    *,
    fresh: bool = False,
    budget: float | str | None = None,
    listener: Listener | None = None,
) -> RunOutcome:
    """Measure a study on the device ``spec``; the run says that ``command`` made it."""
    from nqbench.devices.registry import facts_for
    from nqbench.measure.runner import run_study
    from nqbench.runs.reading import local_folder

    facts = facts_for(spec)
    return run_study(
        study,
        expand_study(study, facts, warn=listener.message if listener else None),
        spec,
        Path(out) if out is not None else local_folder(study.name, spec),
        fresh=fresh,
        budget_s=_seconds(budget),
        listener=listener,
        command=command,
    )


def expand(study: StudyLike, device: str = "auto") -> list[Point]:
    """The points of a study on a device, without running anything.

    Raises ``StudyError`` for a factor, level or system that does not exist, ``InfeasibleError`` for
    a point that cannot run, unless the study says ``infeasible: skip``.
    """
    from nqbench.devices.registry import facts_for

    return expand_study(_study(study), facts_for(_named(device)))


def launch(
    kernel: StudyLike | Workload,
    factors: FactorLevels | None = None,
    device: str | Device = "auto",
    *,
    buffers: Mapping[str, NDArray[Any]] | None = None,
    check: bool = True,
    warm_up: bool = False,
    **levels: Level,
) -> Launched:
    """Launch one configuration of a kernel once: its outputs, its counters or its time.

    ``kernel`` is a study (a file, a packaged one's name, a dictionary, or only the dictionary of
    its key ``kernel``), the name of a system or a workload, or a ``Workload``. A kernel's key
    ``source`` may hold CUDA code in place of a file's name. ``factors`` and ``levels`` are ``n``
    and any factor, or ``system``; what they leave out has its first level in the study, and ``n``
    the smallest size.

    ``buffers`` are NumPy arrays by the names of the kernel's buffers and module variables, in place
    of the contents that the study describes; each has the buffer's dtype and its shape. The check
    of the study sees them too. ``check=False`` returns wrong outputs as well; ``warm_up`` launches
    once before, on what other seeds give, so that ``kernel_s`` does not pay for loading the module
    and a kernel that keeps its results is wrong.

    Raises ``TypeError`` for an argument of another type, ``StudyError`` for a name, level or array
    that does not fit, ``InfeasibleError`` where the configuration cannot run, ``DeviceError`` and
    ``CompileError`` where it fails, ``WrongAnswer`` if the answer is wrong.
    """
    from nqbench.devices.registry import facts_for

    _check_types(kernel, factors, device, buffers)
    given = {name: _python(level) for name, level in {**(factors or {}), **levels}.items()}
    facts = facts_for(device) if isinstance(device, str) else device.facts
    workload, first = _kernel(kernel, given, facts)
    asked = first | given
    return launching.launch(workload, asked, device, buffers=buffers, check=check, warm_up=warm_up)


def check(subject: StudyLike, device: str = "sim:mini", **levels: Levels) -> Checked:
    """Look for memory errors, races and divergent barriers in the simulator; needs no GPU.

    ``subject`` is a study or the name of a system, ``device`` a simulator. ``levels`` choose
    points: a level, or a list of levels of a factor, of ``n``, ``system`` or ``sweep``; without
    ``n`` each configuration is taken at its smallest size. The result has ``mistakes`` (each with
    its line, count, first threads and values), the labels of the points ``checked``, and
    ``skipped`` and ``failed`` ones with their reasons; ``as_json()`` is its plain form.

    Raises ``TypeError``, ``StudyError`` and ``InfeasibleError`` as ``nqbench check`` refuses.
    """
    from nqbench.devices.registry import open_simulator
    from nqbench.inspection import check_points

    simulator = open_simulator(_named(device), checked=True)
    return check_points(_points(subject, simulator.facts, levels), simulator)


def explain(subject: StudyLike, device: str = "sim:mini", **levels: Levels) -> list[Explained]:
    """Count by source line in the simulator: a result for each kernel of each point.

    ``subject``, ``device`` and ``levels`` as in :func:`check`. ``table()`` of a result is a
    DataFrame with a row per line: its text, instructions, issue slots, divergent branches, bank
    conflicts, sectors; ``counters`` has those of the whole launch.

    Raises what :func:`check` raises, and ``CompileError`` or ``DeviceError`` where a launch fails.
    """
    from nqbench.devices.registry import facts_for
    from nqbench.inspection import explain_points

    points = _points(subject, facts_for(_named(device)), levels)
    return [one for kernels in explain_points(points, device) for one in kernels]


def static(
    study: StudyLike, arch: str | Sequence[str] = "sm_75,sm_80,sm_90,sm_120"
) -> pd.DataFrame:
    """What the compiler makes of every kernel of a study, without a GPU: one row per kernel and
    architecture.

    Columns as in ``nqbench static``: ``registers`` per thread, bytes of stack, spills and shared
    memory, ``blocks_per_multiprocessor``, ``occupancy`` (0 to 1), ``limiter``, ``note``. ``arch``
    names architectures or chips: ``"sm_90"``, ``["sm_75", "gtx480"]``.

    Raises ``StudyError`` for an unknown architecture, ``DeviceUnavailable`` without a compiler.
    """
    from dataclasses import asdict

    from nqbench.runs.frame import table_of

    loaded = _study(study)
    archs = arch.split(",") if isinstance(arch, str) else arch
    rows = launching.static_rows(lambda facts: expand_study(loaded, facts), archs)
    return table_of([asdict(row) for row in rows])


def compare(
    *runs: Run | Path | str,
    by: str | None = None,
    margin: float | str = DEFAULT_MARGIN,
    value: str | None = None,
) -> Findings:
    """Compare the same points of several runs, or with ``by`` levels of a factor within one.

    The first run is the reference; nvbench's JSON files count as runs too. ``by`` is written
    ``"FACTOR=REFERENCE,LEVEL..."``; ratios within ``margin`` of 1 (``0.01`` or ``"1%"``) count as
    the same; ``value`` names a phase or counter instead of the usual quantities. ``.table()`` of
    the result is a DataFrame.

    Raises ``StudyError`` and ``AnalysisError`` for runs that cannot be compared, ``StoreError`` and
    ``InterchangeError`` for a damaged one.
    """
    from nqbench.analysis.compare.request import compare_datasets, parse_percentage
    from nqbench.interchange import open_runs

    within = parse_percentage(margin, "the margin") if isinstance(margin, str) else margin
    paths = [Path(run) for run in runs]
    names = [printable(path) for path in paths]
    return compare_datasets(open_runs(paths), names, by=by, margin=within, value=value)


def judge(*runs: Run | Path | str, paper: str | None = None) -> pd.DataFrame:
    """Verdicts on the claims of the papers that runs are about, or of ``paper``.

    One row per claim and device: ``claim``, ``statement``, ``verdict`` (``holds``, ``fails``,
    ``no effect``, ``unclear``, ``not measured``), ``size`` (``as large``, ``weaker``, ...),
    ``measured`` with its interval, ``paper`` and more, as text; docs/papers.md explains them.

    Raises ``StudyError`` where no run is about a paper, ``StoreError`` for a damaged run.
    """
    import pandas as pd

    from nqbench.report.papers.write import claims_tables

    if not runs:
        raise StudyError("name the runs to judge")
    tables = claims_tables([Path(run) for run in runs], paper)
    frames = [
        pd.DataFrame(table.texts(), columns=[column.name for column in table.columns])
        for table in tables.values()
    ]
    return pd.concat(frames, ignore_index=True)


def _seconds(budget: float | str | None) -> float | None:
    """A budget in seconds. Raises ``StudyError`` for one in which nothing could be measured."""
    seconds = duration_s(budget) if isinstance(budget, str) else budget
    if seconds is not None and not seconds > 0:  # NaN included
        raise StudyError(f"a budget of {seconds:g} s measures nothing; give more than 0 s")
    return seconds


def _study(study: StudyLike) -> Study:
    said = "a study is a file, the name of a packaged one, a dictionary or a Study"
    _check_type(study, Study | Mapping | Path | str, said)
    return study if isinstance(study, Study) else load_study(study)


def _check_types(kernel: Any, factors: Any, device: Any, buffers: Any) -> None:
    import numpy as np

    said = "launch takes a study (file, name or dictionary), a system or a workload"
    _check_type(kernel, Study | Mapping | Path | str | Workload, said)
    hint = "; or write them as factor=level"
    _check_type(factors, Mapping | None, "factors is a dictionary of factors and levels", hint)
    if not hasattr(device, "facts"):
        _named(device)
    _check_type(buffers, Mapping | None, "buffers is a dictionary of NumPy arrays by their buffers")
    for name, array in (buffers or {}).items():
        said = f"buffers[{name!r}] is a NumPy array"
        _check_type(array, np.ndarray, said, "; np.asarray makes one")


def _check_type(value: Any, kind: Any, said: str, hint: str = "") -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{said}, not {type(value).__name__}{hint}")


def _named(device: Any) -> str:
    _check_type(device, str, "device is a name such as 'sim:mini'")
    return str(device)


def _python(level: Any) -> Any:
    """A number of NumPy's as Python's own."""
    return level.item() if hasattr(level, "item") else level


def _kernel(
    kernel: StudyLike | Workload, given: FactorLevels, facts: DeviceFacts
) -> tuple[Workload, dict[str, Level]]:
    """The workload that is meant, and the levels that it has where none are given."""
    from nqbench import workloads
    from nqbench.study.packaged import studies

    if isinstance(kernel, Workload):
        return kernel, {}
    if isinstance(kernel, str) and not kernel.endswith((".yaml", ".yml")):
        if any(kernel in workload.systems for workload in workloads.with_systems()):
            return workloads.find_system(kernel), {SYSTEM: kernel}
        if kernel not in studies() or kernel in workloads.names():
            return workloads.named(kernel), {}
    study = _study_of(kernel, given)
    workload = workloads.register(study.external)
    return workload, _first_levels(study, workload, given, facts)


def _study_of(given: StudyLike, levels: Mapping[str, Any]) -> Study:
    """A study, also of a dictionary that is only its key ``kernel``; the levels give its sizes."""
    if isinstance(given, Mapping):
        whole = given if KERNEL in given or "workload" in given else {KERNEL: given}
        sizes = {"n": levels["n"]} if "n" in levels else {}
        return load_study({"name": KERNEL, **sizes, **whole})
    return _study(given)


def _points(subject: StudyLike, facts: DeviceFacts, levels: Mapping[str, Levels]) -> list[Point]:
    from nqbench.point import text
    from nqbench.study.asked import chosen_points

    words = []
    for name, given in levels.items():
        several = given if isinstance(given, list | tuple) else [given]
        words.append(f"{name}={','.join(text(_python(level)) for level in several)}")
    if isinstance(subject, Path):
        subject = str(subject)
    named = subject if isinstance(subject, str) else _study_of(subject, levels)
    try:
        return chosen_points(named, facts, words)
    except StudyError as error:
        raise StudyError(error.message.removeprefix("--point "), error.place) from error


def _first_levels(
    study: Study, workload: Workload, given: FactorLevels, facts: DeviceFacts
) -> dict[str, Level]:
    """The first level of everything that the first sweep of a study gives, and the smallest size.

    A system that is asked for keeps its own levels; what the study calculates is left to the
    workload.
    """
    from nqbench.study.check import is_expression

    sweep = study.sweeps[0]
    axes = {name: axis.on(facts.kind) for name, axis in sweep.given.items()}
    sizes = axes.pop("n", ()) or (study.n.on(facts.kind) if study.n else ())
    levels = {name: items[0].value for name, items in axes.items() if items}
    if levels.get(SYSTEM) in sweep.programs:
        del levels[SYSTEM]
    system = given.get(SYSTEM)
    own = workload.systems.get(str(system), {}) if system else {}
    levels = {
        name: level
        for name, level in levels.items()
        if name == SYSTEM
        or (name not in own and not is_expression(level, workload.factors.get(name)))
    }
    smallest = min((item.value for item in sizes if isinstance(item.value, int)), default=None)
    return levels if smallest is None else {**levels, "n": smallest}
