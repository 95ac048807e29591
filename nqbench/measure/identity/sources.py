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
from typing import Final, Literal

from nqbench.system.versions import PACKAGE

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
Stamp = tuple[int, int] | None
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
    """Modules, all they import, and kernels.

    ``stops`` are modules that, with all below them, are not followed; ``bases`` says which
    packages are followed at all. ``kernels`` are all those in the ``folder`` of a module (whatever
    way it finds them), those that a module has ``named``, or ``none``; with what they include.
    """

    roots: tuple[str, ...]
    stops: frozenset[str] = frozenset()
    bases: Bases = OURS
    kernels: Literal["folder", "named", "none"] = "named"

    def files(self) -> tuple[Path, ...]:
        """The files, in a fixed order."""
        modules = _closure(self.roots, self.stops, dict(self.bases))
        paths = [path for _, path in sorted(modules.items())]
        starts: list[Path] = []
        if self.kernels == "folder":
            starts = [file for folder in {p.parent for p in paths} for file in folder.iterdir()]
        elif self.kernels == "named":
            starts = [path.parent / name for path in paths for name in _named(path)]
        kernels = _with_includes(file for file in starts if file.suffix in KERNEL_SUFFIXES)
        return (*paths, *sorted(kernels))

    def digest(self) -> str:
        """Hash of what the files mean, as they are now. Quick as long as no file is touched."""
        kept = _DIGESTS.get(self)
        if kept is not None and kept.stamps == tuple(map(_stamp, kept.files)):
            return kept.digest
        files = self.files()
        stamps = tuple(map(_stamp, files))
        digest = self._digest(files)
        _DIGESTS[self] = _Digest(files, stamps, digest)
        return digest

    @staticmethod
    def _digest(files: Iterable[Path]) -> str:
        total = hashlib.sha256()
        for path in files:
            text = _read(path)
            meant = python_meaning(text) if path.suffix == ".py" else kernel_meaning(text)
            total.update(f"{path.name}\0{meant}\0".encode(errors="surrogateescape"))
        return total.hexdigest()


@dataclass(frozen=True, slots=True)
class _Digest:
    """A digest and the files it was made of: while their stamps stay, so does the digest."""

    files: tuple[Path, ...]
    stamps: tuple[Stamp, ...]
    digest: str


_DIGESTS: Final[dict[Sources, _Digest]] = {}


def _stamp(path: Path) -> Stamp:
    """Time of the last change and size of a file; ``None`` if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def python_meaning(text: str) -> str:
    """The code of a module without comments, docstrings and layout; as it is if it is no Python."""
    tree = _parse(text)
    if tree is None:
        return text
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


def _read(path: Path) -> str:
    """The text of a file; empty if it is gone, as it may be while an editor replaces it."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None  # half written, perhaps; whoever imports it will hear of it


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
            tree = _parse(_read(path)) or ast.Module([], [])
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


def _named(path: Path) -> Iterator[str]:
    """Texts in a module that may be the name of a kernel's file."""
    nodes = ast.walk(_parse(_read(path)) or ast.Module([], []))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    yield from (t for t in texts if isinstance(t, str) and t.endswith(KERNEL_SUFFIXES))


def _with_includes(starts: Iterable[Path]) -> set[Path]:
    """Kernel sources and what they include, from wherever."""
    found: set[Path] = set()
    waiting = list(starts)
    while waiting:
        path = waiting.pop().resolve()
        if path not in found and path.is_file():
            found.add(path)
            waiting += [path.parent / name for name in _INCLUDE.findall(_read(path))]
    return found


def module_of(value: object) -> ModuleType | None:
    """The module that defines the type of an object."""
    return sys.modules.get(type(value).__module__)
