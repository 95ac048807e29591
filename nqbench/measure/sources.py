"""Which source text can change a number, and a hash of it that ignores what cannot.

Python modules are followed through their imports, kernels through their includes. What is hashed is
the meaning of a file: comments, docstrings and layout do not count. Where a reader of text cannot
be sure (raw strings, ``__LINE__``), the whole file counts.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from nqbench.measure.environment import PACKAGE

KERNEL_SUFFIXES: Final = (".cu", ".cuh", ".h", ".hpp")
NEUTRAL: Final = frozenset({"nqbench", "nqbench.errors", "nqbench.vocabulary", "nqbench.workloads"})
"""Modules of names only: exceptions, words, the list of workloads. A new one changes no number."""

_REFERENCE: Final = re.compile(r"(\w+(?:\.\w+)+):\w+")  # a function by name, as host plans have it
_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_COMMENT: Final = re.compile(
    r""" (?P<text> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )  # a literal, kept
       | //(?:[^\\\n]|\\.)*                                  # to the end of the (joined) line
       | /\*.*?\*/ """,
    re.DOTALL | re.VERBOSE,
)
_UNSURE: Final = re.compile(
    r"""R"|__LINE__|__COUNTER__|\?\?/|[0-9a-fA-F]'[0-9a-fA-F]|\#[ \t]*(?:error|warning)"""
)
"""Raw strings, line numbers, trigraphs, digit separators, free text: there layout may matter."""

Bases = frozenset[tuple[str, Path]]
"""Top-level names whose modules are followed, and the folder each is in."""
OURS: Final[Bases] = frozenset({("nqbench", PACKAGE.parent)})


def bases_of(module: ModuleType) -> Bases:
    """nqbench itself, and the package (or for a lone file: its neighbours) of a foreign module."""
    name, file = module.__name__, module.__file__
    if file is None or name.partition(".")[0] == "nqbench":
        return OURS
    path = Path(file).resolve()
    depth = name.count(".") + (path.name == "__init__.py")
    folder = path.parents[depth]
    if depth:
        return OURS | {(name.partition(".")[0], folder)}
    installed = {Path(sysconfig.get_paths()[kind]) for kind in ("purelib", "platlib", "stdlib")}
    beside = [path] if folder in installed else sorted(folder.glob("*.py"))
    return OURS | {(neighbour.stem, folder) for neighbour in beside}


@dataclass(frozen=True, slots=True)
class Sources:
    """Modules, all they import, and (``kernels``) the kernels in their folders.

    ``stops`` are modules that, with all below them, are not followed; ``bases`` says which
    packages are followed at all.
    """

    roots: tuple[str, ...]
    stops: frozenset[str] = frozenset()
    bases: Bases = OURS
    kernels: bool = True

    def files(self) -> tuple[Path, ...]:
        """The files, in a fixed order."""
        modules = _closure(self.roots, self.stops, dict(self.bases))
        paths = [path for _, path in sorted(modules.items())]
        kernels = _kernels({path.parent for path in paths}) if self.kernels else set()
        return (*paths, *sorted(kernels))

    def digest(self) -> str:
        """Hash of what the files mean, as they are now."""
        total = hashlib.sha256()
        for path in self.files():
            text = path.read_text(encoding="utf-8")
            meant = python_meaning(text) if path.suffix == ".py" else kernel_meaning(text)
            total.update(f"{path.name}\0{meant}\0".encode())
        return total.hexdigest()


def python_meaning(text: str) -> str:
    """The code of a module without comments, docstrings and layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            # Texts that stand alone do nothing, be they docstrings or notes below a constant.
            node.body = [inner for inner in node.body if not _is_note(inner)] or [ast.Pass()]
    return ast.dump(tree)


def kernel_meaning(text: str) -> str:
    """CUDA source without comments, indentation and empty lines; as it is where that is unsure."""
    if _UNSURE.search(text):
        return text
    code = _COMMENT.sub(lambda found: found["text"] or " ", text)
    kept: list[str] = []
    joined = False  # the line before goes on in this one, so that its layout may matter
    for line in code.splitlines():
        quoted = '"' in line or "'" in line
        meant = line if joined else line.strip() if quoted else " ".join(line.split())
        if meant or joined:
            kept.append(meant)
        joined = line.endswith("\\")
    return "\n".join(kept)


def _is_note(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _closure(
    roots: Iterable[str], stops: frozenset[str], bases: dict[str, Path]
) -> dict[str, Path]:
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = None if name in found or _stopped(name, stops) else _find(name, bases)
        if path is not None:
            found[name] = path
            tree = ast.parse(path.read_text(encoding="utf-8"))
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            waiting += _imports(tree, package)
    return found


def _stopped(name: str, stops: frozenset[str]) -> bool:
    if name in NEUTRAL:
        return True
    return any(name == stop or name.startswith(f"{stop}.") for stop in stops)


def _find(name: str, bases: dict[str, Path]) -> Path | None:
    base = bases.get(name.partition(".")[0])
    if base is None:
        return None
    path = base.joinpath(*name.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Names that may be modules, wherever in the file they are imported or referred to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*above, node.module] if node.level else [node.module]
            module = ".".join(part for part in parts if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            reference = _REFERENCE.fullmatch(node.value)
            if reference:
                yield reference[1]


def _kernels(folders: Iterable[Path]) -> set[Path]:
    """Kernel sources in the folders, and what they include from elsewhere."""
    found: set[Path] = set()
    waiting = [f for folder in folders for f in folder.iterdir() if f.suffix in KERNEL_SUFFIXES]
    while waiting:
        path = waiting.pop().resolve()
        if path in found or not path.is_file():
            continue
        found.add(path)
        included = _INCLUDE.findall(path.read_text(encoding="utf-8"))
        waiting += [path.parent / name for name in included]
    return found


def module_of(value: object) -> ModuleType | None:
    """The module that defines the type of an object."""
    return sys.modules.get(type(value).__module__)
