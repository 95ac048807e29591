"""Write docs/reference: pages whose sentences are the program's own.

    python scripts/reference.py            (part of `make docs`)

The study format and that of papers come from their schemas, the functions of claims and the
thresholds from their docstrings, the commands from their help, the troubles from the doctor. A test
holds the committed pages equal to what this writes.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nqbench import workloads
from nqbench.analysis.claims.functions import Values
from nqbench.cli.app import app
from nqbench.doctor.probe import ProbeResult
from nqbench.doctor.report import CHECKS, FEATURES, DoctorRow, filled
from nqbench.expressions import DEVICE_FACTS
from nqbench.papers import forms
from nqbench.papers import schema as papers
from nqbench.papers.formula import CELL_FUNCTIONS, CELL_NAMES, FUNCTIONS, RECORDED
from nqbench.report.papers import cells
from nqbench.study.own_kernel import (
    ArgumentFile,
    CheckFile,
    FactorFile,
    KernelFile,
    MetricFile,
    VariableFile,
)
from nqbench.study.report_items import REPORT_KINDS
from nqbench.study.schema import (
    MeasureFile,
    ProgramFile,
    ReportFile,
    StudyFile,
    SweepFile,
    SweepKeys,
)
from nqbench.vocabulary import COUNTERS, ERRORS, PHASES, PROGRAM_COUNTERS

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "docs" / "reference"
WRITTEN: Final = "<!-- Written by scripts/reference.py (`make docs`); changes here are lost. -->"

FORMS: Final[tuple[tuple[str, str, type[BaseModel]], ...]] = (
    ("Top level", "A sweep's keys may stand here too, if there is only one.", StudyFile),
    ("`sweeps`", "A list of sweeps.", SweepFile),
    ("`measure`", "How to measure.", MeasureFile),
    ("`systems`: an external program", "Beside names of systems.", ProgramFile),
    ("`report`", "Each entry is a table or a figure.", ReportFile),
    ("`kernel`", "A kernel of your own.", KernelFile),
    ("`kernel: arguments`", "By name, in the kernel's order.", ArgumentFile),
    ("`kernel: variables`", "By name.", VariableFile),
    ("`kernel: factors`", "By name; a list alone is `levels`.", FactorFile),
    ("`kernel: metrics`", "By name; an expression alone is `value`.", MetricFile),
    ("`kernel: check`", "By buffer; an expression alone is `equals`.", CheckFile),
)
"""Heading, a sentence, and the model of each mapping of a study file."""

PUBLISHED: Final[tuple[tuple[str, type[BaseModel]], ...]] = (
    ("Top level", papers.Paper),
    ("`source`", papers.Work),
    ("`hardware`", papers.Hardware),
    ("`systems`", papers.PaperSystem),
    ("`tables`", papers.PaperTable),
    ("`tables: series`", papers.Series),
    ("`tables: series: ratio`", papers.Ratio),
    ("`tables: counterparts`", papers.Counterpart),
    ("`tables: points`", forms.Points),
    ("`tables: shown`", forms.PointColumn),
    ("`tables: here`", forms.HereRow),
    ("`figures`", papers.PaperFigure),
    ("`figures: curves`", forms.Curves),
    ("`figures: curves: y`, `figures: bars: parts`", forms.Height),
    ("`figures: bars`", forms.Bars),
    ("`figures: known`", papers.Known),
    ("`data`", papers.DataFile),
    ("`claims`", papers.Claim),
    ("`claims: today`", papers.Today),
    ("`effects`", papers.Effect),
    ("`caveats`", papers.Caveat),
)
"""Heading and model of each mapping of ``published.yaml``."""
OWN_FUNCTIONS: Final = tuple(n for n in CELL_FUNCTIONS if n not in ("min", "max", "abs"))
DECIDING: Final = ("measure", "devices/cuda", "runs", "analysis", "count")
"""Folders of nqbench whose constants decide how long to measure, what counts and what is said."""

QUOTE: Final = '"'
PROGRAMS: Final = ("sudo", "make", "python", "export", "unset", "echo", "nqbench", "nvidia-smi")
"""How remedies begin that are commands."""

FAILED: Final = ProbeResult(failure="ImportError: ...")
"""What a question of a computer may give."""
EXAMPLE: Final = {
    **dict.fromkeys(("packages", "compiler", "linker", "llvmlite", "numba", "pycuda"), FAILED),
    **{"nvml": FAILED, "driver": ProbeResult(failure="no answer within 10 s")},
    **{"python": "3.10.0 in ~/.venv", "unmet": "scipy>=1.12 (installed: 1.0)"},
    **dict.fromkeys(("setup", "setup_cuda", "setup_cuda12"), "make setup"),
    **{"pip": "python -m pip install", "driver_about": "serves CUDA up to 13.0", "error": 999},
    **{"nvrtc": "13.0.88", "served": "12.8", "unknown_chip": "sm_70 (GPU 0)"},
    **{"index": 0, "about": "H100, 9.0 (sm_90), 80 GiB", "lock": 1980, "running": "1: 4711 python"},
    **{"clock_now": ", SM clock 345 of at most 1980 MHz now", "governor": "powersave"},
    **{"ncu_elsewhere": "/opt/nvidia/nsight-compute/2025.3.1", "load": "8 of 8 usable, load 7.5"},
    **{"cache": "~/.cache/nqbench/kernels", "results": "results", "free": "0.3 GiB"},
    **{"device": "cuda:2", "gpu_range": "2: cuda:0 to cuda:1"},
}
"""Facts of a computer that lacks everything."""


def main() -> int:
    """Write the pages; list those that changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        page = FOLDER / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            sys.stderr.write(f"reference: {name} has changed\n")
    return 0


def pages() -> dict[str, str]:
    """Every page by its file name."""
    makers = commands, study, published, thresholds, troubleshooting
    made = {maker.__name__: maker() for maker in makers}
    return {f"{name}.md": _page(*blocks) for name, blocks in made.items()}


def _page(title: str, *blocks: str) -> str:
    return "\n\n".join([title, WRITTEN, *map(_filled, blocks)]) + "\n"


def _filled(block: str) -> str:
    return (
        block if block.startswith(("|", "#")) else textwrap.fill(block, 120, break_on_hyphens=False)
    )


def commands() -> list[str]:
    """The help of every command."""
    group: Any = typer.main.get_command(app)
    blocks = ["# Commands", "What `nqbench COMMAND --help` says, for all of them."]
    for name, command in group.commands.items():
        takes = [p for p in command.params if not p.hidden and "--help" not in p.opts]
        words = (_argument(p) for p in takes if p.param_type_name == "argument")
        blocks += [f"## `nqbench {' '.join([name, *words])}`", " ".join(command.help.split())]
        if takes:
            rows = ([_written(p), p.help or "", _default(p.default)] for p in takes)
            blocks.append(table(("argument, option", "meaning", "default"), rows))
    return blocks


def _argument(parameter: Any) -> str:
    name = f"{(parameter.metavar or parameter.name.upper()).strip('[].')}"
    more = "..." if parameter.nargs == -1 else ""
    return f"{name}{more}" if parameter.required else f"[{name}]{more}"


def _written(parameter: Any) -> str:
    """How an argument or an option is written, the short form first."""
    if parameter.param_type_name == "argument":
        return f"`{_argument(parameter)}`"
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    return _words(f"{o}{value}" for o in (*parameter.opts[::-1], *parameter.secondary_opts))


def _default(value: Any) -> str:
    nothing = value in (None, "", [], (), {}, False)
    return "" if nothing or callable(value) else f"`{json.dumps(value, default=str).strip(QUOTE)}`"


def study() -> list[str]:
    """The grammar of a study: every key, table, figure, factor, fact and quantity."""
    guide = "[The study file](../study-format.md) explains them with examples."
    blocks = ["# Study file: every key", guide]
    for heading, sentence, model in FORMS:
        own = [key for key in model.model_fields if key not in _of_sweep(model)]
        blocks += [
            f"## {heading}",
            sentence,
            table(("key", "meaning", "default"), _keys(model, own)),
        ]
    kinds = ([f"`{k.form}: {k.name}`", k.meaning, _words(k.options)] for k in REPORT_KINDS)
    blocks += ["## Tables and figures", table(("entry", "shows", "options"), kinds)]
    for workload in map(workloads.get, workloads.names()):
        if workload.factors:
            rows = (
                [f"`{f.name}`", f.meaning, ", ".join(f.takes())] for f in workload.factors.values()
            )
            blocks += [
                f"## Factors of `{workload.name}`",
                table(("factor", "meaning", "levels"), rows),
            ]
    quantities = {"time": "the kernel's time", **PHASES, **COUNTERS, **PROGRAM_COUNTERS, **ERRORS}
    return [
        *blocks,
        "## Facts of the device",
        "In expressions, sizes in bytes: "
        + _words(f"device.{name}" for name in DEVICE_FACTS)
        + ".",
        "## Quantities",
        "What `value` takes: a time, a phase of it, or a counter of the simulator.",
        table(("value", "meaning"), ([f"`{name}`", text] for name, text in quantities.items())),
    ]


def _of_sweep(model: type[BaseModel]) -> Iterable[str]:
    """Keys of a study that its sweeps have too: they are listed there, save ``n``."""
    return set(SweepKeys.model_fields) - {"n"} if model is StudyFile else ()


def _keys(model: type[BaseModel], names: Iterable[str]) -> Iterator[Sequence[str]]:
    for name in names:
        key = model.model_fields[name]
        given = None if key.default_factory else key.default
        default = "required" if key.is_required() else _default(given)
        yield f"`{key.alias or name}`", " ".join((key.description or "").split()), default


def published() -> list[str]:
    """The grammar of ``published.yaml`` and the functions of its claims."""
    blocks = [
        "# A paper's file: every key",
        "[The papers](../papers.md) explains `published.yaml` with an example. Values are text,"
        " with the digits that the paper prints.",
    ]
    for heading, model in PUBLISHED:
        sentences, meanings = _described(model)
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        said = {key: meanings.get(key) or _choices(field) for key, field in fields.items()}
        explained = ([f"`{key}`", text] for key, text in said.items() if text)
        blocks += [f"## {heading}", *sentences]
        for words, required in (("Required", True), ("Optional", False)):
            if keys := [key for key, field in fields.items() if field.is_required() == required]:
                blocks.append(f"{words}: {_words(keys)}.")
        if any(said.values()):
            blocks.append(table(("key", "meaning"), explained))
    values = Values(None, ())  # type: ignore[arg-type]
    functions = {name: getattr(values, name) for name in FUNCTIONS if hasattr(values, name)}
    row = cells.PointRow(None, None, "", 0)  # type: ignore[arg-type]
    of_cells = {name: getattr(row, name, None) or getattr(cells, name) for name in OWN_FUNCTIONS}
    made = (
        [
            [f"`{name}({_parameters(function)})`", _plain(inspect.getdoc(function) or "")]
            for name, function in every.items()
        ]
        for every in (functions, of_cells)
    )
    rows, rows_of_cells = made
    return [
        *blocks,
        "## Functions of claims",
        "`FACTOR=LEVEL` and `sweep=NAME` choose among the configurations of a system; those of"
        " sweeps called `filled...` and `scaled...` are seen by their name alone.",
        table(("function", "gives"), rows),
        "## Formulas of tables and figures",
        "The language of claims for one point of a run. A quotient of times is paired by round and"
        f" has its interval. Names: every factor; {_words(RECORDED)}, as recorded;"
        f" {_words(CELL_NAMES)}.",
        table(("function", "gives"), rows_of_cells),
    ]


def _choices(field: FieldInfo) -> str:
    """The words that a key takes, if it takes no others."""
    words = get_args(field.annotation)
    return ", ".join(words) if words and all(isinstance(word, str) for word in words) else ""


def _described(model: type[BaseModel]) -> tuple[list[str], dict[str, str]]:
    """The sentences of a model's docstring, and what it says of its keys (``key``  meaning)."""
    sentences: list[str] = []
    meanings: dict[str, str] = {}
    for paragraph in (inspect.getdoc(model) or "").split("\n\n"):
        named = re.split(r"^``(\w+)``  +", paragraph, flags=re.MULTILINE)
        meanings |= {k: _plain(text) for k, text in zip(named[1::2], named[2::2], strict=True)}
        if text := _plain(named[0]):
            sentences.append(text)
    return sentences, meanings


def _parameters(function: Any) -> str:
    """As claims write them: levels are ``FACTOR=``."""
    forms: dict[Any, str] = {
        inspect.Parameter.VAR_KEYWORD: "FACTOR=",
        inspect.Parameter.VAR_POSITIONAL: "...",
    }
    own = inspect.signature(function).parameters.values()
    said = [forms.get(p.kind) or p.name + "=" * (p.default is not p.empty) for p in own]
    if said[:1] == ["asked"]:  # made from these arguments of every function of a system
        words = [word for word in said[1:] if not word.endswith("=")]
        said = ["system", *words, "N=", "hw=", *said[1 + len(words) :], "FACTOR="]
    return ", ".join(said)


def _plain(text: str) -> str:
    """A docstring on one line, its code and references in Markdown."""
    return re.sub(r"(?::\w+:)?`+([^`]+)`+", r"`\1`", " ".join(text.split()))


def thresholds() -> list[str]:
    """Every constant that decides something, with its reason, which is its docstring."""
    blocks = [
        "# Thresholds",
        "Every limit that decides how long nqbench measures, what counts and what a comparison or"
        " a verdict says. [The study file](../study-format.md#measuring) lists what a study sets.",
    ]
    for folder in DECIDING:
        room = ROOT / "nqbench" / folder
        rows = (
            [name, value, f"`{path.relative_to(room)}`", reason]
            for path in sorted(room.rglob("*.py"))
            for name, value, reason in _constants(path)
        )
        blocks += [f"## `nqbench/{folder}`", table(("threshold", "value", "in", "reason"), rows)]
    return blocks


def _constants(path: Path) -> Iterator[tuple[str, str, str]]:
    """Public numbers of a module that have a docstring; neighbours may share one."""
    waiting: list[tuple[str, str]] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name), value=ast.Constant(value=int() | float() as value)
            ) if not name.startswith("_"):
                waiting.append((name, f"{value:,}" if isinstance(value, int) else f"{value:g}"))
            case ast.Expr(value=ast.Constant(value=str() as text)) if waiting:
                yield from ((f"`{name}`", value, _plain(text)) for name, value in waiting)
                waiting = []
            case _:
                waiting = []


def troubleshooting() -> list[str]:
    """What ``nqbench doctor`` says of computers that lack something, by what then fails."""
    blocks = [
        "# Troubleshooting",
        "`nqbench doctor` looks for all of this and changes nothing.",
        "`missing`: the feature does not work. `warning`: it works, but read this.",
    ]
    rows = [
        filled(check, case, EXAMPLE)
        for group in CHECKS.values()
        for check in group
        for case in check["cases"]
        if "ok" not in case
    ]
    for feature, meaning in FEATURES.items():
        own = [(r.name, r.state, r.found, _remedy(r)) for r in rows if r.feature == feature]
        if own:
            heads = ("looked at", "state", "found (an example)", "what to do")
            blocks += [f"## {meaning[0].upper()}{meaning[1:]}", table(heads, own)]
    return blocks


def _remedy(row: DoctorRow) -> str:
    """Commands as code; advice in words as it is."""
    command, blanks, more = row.remedy.partition("   ")
    return f"`{command}`{blanks[:1]}{more}" if command.startswith(PROGRAMS) else row.remedy


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = (
        [cell.replace("|", r"\|") for cell in line] for line in (heads, ["---"] * len(heads), *rows)
    )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.exit(main())
