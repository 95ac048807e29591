"""A source written for nvcc without its host code, which NVRTC cannot compile.

A file is cut into the pieces that stand outside of functions and classes: functions, classes,
variables, declarations. Functions without ``__global__``, ``__device__`` or ``constexpr`` and
their declarations are host code and are left out. Line breaks and preprocessor lines stay, so that
every line keeps its number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nqbench.compiler import nvrtc
from nqbench.compiler.bindings import cuda_headers, requirements
from nqbench.compiler.includes import STANDINS, Header, host_libraries, included_names, whole_cub
from nqbench.errors import CompileError

ROUNDS: Final = 24
"""Compilations before an error counts as final: each may hide others."""
HOST_HEADER: Final = 20
"""Errors from which a header without any code of the device is taken to be the host's: NVRTC tells
100 at a time, and the headers of OpenGL would have thousands."""
OPTIONS: Final = (
    *("--device-as-default-execution-space", "--pre-include=nqbench/host.h"),
    *("-D__linux__", "-D__unix__", "-Dregister=", "-D__extension__="),
)
"""Members of classes without a mark compile as device code, and every source sees what nvcc shows
to each. ``register`` and ``__extension__`` mean nothing to nvcc, and NVRTC has them not."""
_NOT_FOUND: Final = "#warning not found\n"
"""Text of a header that no folder has: the compiler says which of them a program includes."""
_QUIET: Final = frozenset({"-w", "--disable-warnings"})
_UNDEFINED: Final = re.compile(r'identifier "(\w+)" is undefined')
_PACKAGES: Final = {
    re.compile(r"(?:cub|thrust|cuda)/"): "nvidia-cuda-cccl",
    re.compile(r"curand_"): "nvidia-curand",
}
"""Where headers of NVIDIA's libraries for kernels are."""

_TOKEN: Final = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"""
    r"""|(?P<directive>(?<![^\n])[ \t]*\#(?:\\\r?\n|//[^\n]*|/\*.*?\*/|[^\n])*)"""
    r"""|(?P<text>R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<sign>[{}();=~:\[])"""
    r"""|(?P<word>\w+)""",
    re.DOTALL,
)
_MARKS: Final = frozenset({"__global__", "__device__", "__constant__", "__managed__", "__shared__"})
_ALIAS: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
_TRANSPARENT: Final = re.compile(
    r'\s*(?:inline\s+)?(?:namespace\b[^;(){}=]*|extern\s*"C(?:\+\+)?")\s*'
)
_TYPE: Final = re.compile(
    r"\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:struct|class|union|enum)\b", re.DOTALL
)
_OPERATOR: Final = re.compile(r"\boperator\s*[^\w\s(]*$")
_ATTRIBUTES: Final = re.compile(r"(?:__\w+__|alignas)\s*\([^()]*\)")
_LABELS: Final = re.compile(r"(?:\s*(?:public|private|protected)\s*:)+\s*")
_DECLARED: Final = re.compile(
    r"(?!\s*(?:template\s+)?(?:typedef|using|struct|class|union|enum)\b)"
    r"[^()]*\w[\s*&]+[\w:~]+\s*\((?!\s*[\d'\"]).*\)[^()]*",
    re.DOTALL,
)
"""The declaration of a function, and not a macro, a type or a variable with a number."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, ``text[start:end]``."""

    start: int
    end: int
    function: bool
    device: bool


def pieces(text: str, marks: Collection[str] = _MARKS) -> list[Piece]:
    """The pieces of a source. ``marks`` are the words of device code, with those of macros."""
    return _Cutter(text, frozenset(marks) | {"constexpr"}).run()


def members(text: str, whole: Piece, marks: Collection[str]) -> list[Piece]:
    """The pieces of a class, without the labels before them."""
    start = text.find("{", whole.start, whole.end) + 1
    end = text.rfind("}", start, whole.end)
    if whole.function or start == 0 or end < 0:
        return []
    found = _Cutter(text, frozenset(marks) | {"constexpr"}, start, end).run()
    labels = (_LABELS.match(text, piece.start, piece.end) for piece in found)
    return [
        piece if label is None else replace(piece, start=label.end())
        for piece, label in zip(found, labels, strict=True)
    ]


def marks_of(*texts: str) -> frozenset[str]:
    """The words that make a function one of the device: CUDA's, and macros that stand for them."""
    aliases = (pair for text in texts for pair in _ALIAS.findall(text))
    return _MARKS.union(name for name, body in aliases if any(mark in body for mark in _MARKS))


def without(text: str, gone: Collection[Piece]) -> str:
    """The text with pieces blanked out. Preprocessor lines in them stay."""
    parts, at = [], 0
    for piece in sorted(gone, key=lambda p: p.start):
        if piece.start < at:
            continue  # a member of a class that is left out
        parts += [text[at : piece.start], _blank(text[piece.start : piece.end])]
        at = piece.end
    return "".join(parts) + text[at:]


def _blank(text: str) -> str:
    kept, at = [], 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "directive":
            kept += ["\n" * text.count("\n", at, match.start()), match.group()]
            at = match.end()
    return "".join(kept) + "\n" * text.count("\n", at)


class _Cutter:
    def __init__(
        self, text: str, marks: frozenset[str], start: int = 0, end: int | None = None
    ) -> None:
        self.text, self.marks = text, marks
        self.part = start, len(text) if end is None else end
        self.found: list[Piece] = []
        self._begin(start)

    def _begin(self, at: int) -> None:
        self.start: int | None = None
        self.after = at
        self.braces = self.parens = 0
        self.device = self.assigned = self.function = False
        self.head = ""

    def run(self) -> list[Piece]:
        for match in _TOKEN.finditer(self.text, *self.part):
            kind, token = match.lastgroup, match.group()
            if kind in ("comment", "directive"):
                continue
            if self.start is None:
                if token == "}":  # of a namespace
                    self._begin(match.end())
                    continue
                self.start = match.start()
            if kind == "word":
                self.device = self.device or (not self.braces and token in self.marks)
            elif kind == "sign":
                self._sign(token, match.start(), match.end())
        return self.found

    def _sign(self, sign: str, start: int, end: int) -> None:
        if sign in "()":
            self.parens += 1 if sign == "(" else -1
        elif sign == "=":
            self.assigned = self.assigned or self._assigns(start)
        elif sign == "{":
            self._open(start, end)
        elif sign == "}":
            self.braces -= 1
            if self.braces <= 0 and self.function:
                self._close(end)
        elif sign == ";" and not self.braces and self.parens <= 0:
            self._close(end)

    def _assigns(self, at: int) -> bool:
        """Whether ``=`` gives a variable its value: it may be a template's, or an operator's."""
        assert self.start is not None
        before = self.text[self.start : at]
        inside = before.startswith("template") and before.count("<") > before.count(">")
        return not (self.braces or self.parens or inside or _OPERATOR.search(before))

    def _open(self, start: int, end: int) -> None:
        assert self.start is not None
        if not self.braces and not self.parens:
            head = _code(self.text[self.start : start])
            if _TRANSPARENT.fullmatch(head):
                self._begin(end)
                return
            plain = _ATTRIBUTES.sub("", head)
            self.function = (
                "(" in plain
                and not self.assigned
                and not (
                    _TYPE.match(plain) and not plain.rstrip().endswith((")", "const", "noexcept"))
                )
            )
        self.braces += 1

    def _close(self, end: int) -> None:
        assert self.start is not None
        if not self.function and not self.assigned:
            text = _ATTRIBUTES.sub("", _code(self.text[self.start : end]))
            self.function = "{" not in text and _DECLARED.fullmatch(text) is not None
        self.found.append(Piece(self.start, end, self.function, self.device))
        self._begin(end)


def _code(text: str, gone: Collection[str] = ("comment", "directive")) -> str:
    """A text without its comments and preprocessor lines."""
    return _TOKEN.sub(lambda match: " " if match.lastgroup in gone else match.group(), text)


@dataclass(slots=True)
class _SourceFile:
    """A source or header: its pieces, and those that are left out."""

    text: str
    pieces: list[Piece]
    gone: set[Piece]

    def at(self, line: int, among: Sequence[Piece] | None = None) -> Piece | None:
        """The piece on a line, by default of all: the last one to begin there or before."""
        lines = self.text.split("\n")[:line]
        end = len("\n".join(lines))
        pieces = self.pieces if among is None else among
        found = [p for p in pieces if p.start <= end and p.end > end - len(lines[-1])]
        return found[-1] if found else None

    @property
    def left(self) -> str:
        return without(self.text, self.gone)


class DevicePart:
    """A program without its host code, and without what the kernel does not need and that does not
    compile: classes of the host, kernels with textures."""

    def __init__(self, program: nvrtc.CompileRequest, headers: Sequence[Header]) -> None:
        first = {h.path: h.name for h in reversed(headers)}
        # One file under two names would be two files to `#pragma once`.
        self.aliases = {h.name: first[h.path] for h in headers if first[h.path] != h.name}
        own = {h.name: h.text for h in headers if h.name not in self.aliases}
        texts = {str(program.source): program.text, **own}
        self.marks = marks = marks_of(*texts.values())
        self.program = program
        base_name = program.entry.partition("<")[0].rpartition("::")[2].strip()
        self.entry = re.compile(rf"\b{re.escape(base_name)}\b")
        self.missing = _missing(texts)
        included = (name for text in texts.values() for name in included_names(text))
        self.hosts = dict.fromkeys(host_libraries(included), "")
        """Headers of CUDA's that only a host compiler can read; which of theirs NVRTC refused."""
        whole = whole_cub(texts.values(), cuda_headers())
        self.cub = {"cub/cub.cuh": whole} if whole else {}
        self.causes: dict[str, str] = {}
        """The error for which a type or variable is left out, by the text of its piece."""
        self.files = {}
        for name, text in texts.items():
            found = pieces(text, marks)
            host = {p for p in found if p.function and not p.device}
            self.files[name] = _SourceFile(text, found, host)

    def build(self, first: nvrtc.Rejected) -> tuple[bytes, dict[str, str], str]:
        """Compile what is left, leaving out more until it compiles; see ``nvrtc.build``.

        Raises ``CompileError``: ``first`` if nothing could be left out, else the first error in
        code of the device, also where what is left would compile to something else."""
        said: list[str] = []
        last = first
        for _ in range(ROUNDS):
            try:
                built = nvrtc.build(self._left())
                if name := self._replaced():
                    hint = f"it, another '{name}' would take its place; correct it or remove it"
                    raise CompileError(f"{self._said(said, last)} (without {hint})")
                return built
            except nvrtc.Rejected as error:
                last = error
                said = said or self._in_device_code(error)
                if not self._drop(error):
                    break
        raise CompileError(self._said(said, last)) from first

    def _said(self, errors: list[str], last: nvrtc.Rejected) -> str:
        """The errors in code of the device, or what the compiler said last. What an undefined name
        follows from comes first, and headers that the program includes and that are not there."""
        text, error = str(last), next((text for *_, text in last.errors), "")
        if errors:
            while (found := _UNDEFINED.search(errors[0])) and (cause := self._cause(found[1])):
                errors = [cause]
            error = errors[0]
            text = nvrtc.sentence(self.program, errors)
        return "; ".join([text, *self._absent(last.log, *nvrtc.place_of(error))])

    def _cause(self, name: str) -> str:
        """Why a type or variable of this name was left out, once; else empty."""
        for text in self.causes:
            if re.search(rf"\b{name}\b\s*(?:[;={{(\[:]|$)", text):
                return self.causes.pop(text)
        return ""

    def _absent(self, log: str, file: str, line: int) -> list[str]:
        """The headers that were taken to be empty, from which an error may follow."""
        said = []
        used = [name for name in self.missing if f"{name}(1): warning" in log]
        for library, package in _PACKAGES.items():
            if names := [name for name in used if library.match(name)]:
                (needed,) = requirements(package)
                said.append(f"{names[0]} is not installed: pip install '{needed}'")
                used = [name for name in used if name not in names]
        found = [n for n in used if self.missing[n][0] in (file, str(self.program.source))]
        if found := found[:3]:
            names = [f"{n} ({Path(self.missing[n][0]).name}:{self.missing[n][1]})" for n in found]
            where = "put it beside the kernel, or name its folder (`include:`, --include)"
            said.append(f"not found: {', '.join(names)}; {where}")
        text = self.files[file].text.split("\n")[line - 1] if file in self.files else ""
        names = [
            name + (f" ({at})" if at else "")
            for name, at in self.hosts.items()
            if at or f"{name.partition('/')[0]}::" in text
        ]
        if names:
            why = f"need{'s' * (len(names) == 1)} a host compiler; include only what kernels need"
            said.append(f"{', '.join(names)} {why}, such as cub/block/block_reduce.cuh")
        return said

    def _left(self) -> nvrtc.CompileRequest:
        headers = {name: file.left for name, file in self.files.items()}
        return replace(
            self.program,
            text=headers.pop(str(self.program.source)),
            headers={
                **dict.fromkeys(self.missing, _NOT_FOUND),
                **dict.fromkeys(self.hosts, ""),
                **self.cub,
                **{name: f'#include "{own}"\n' for name, own in self.aliases.items()},
                **headers,
            },
            options=(*OPTIONS, *(o for o in self.program.options if o not in _QUIET)),
        )

    def _drop(self, error: nvrtc.Rejected) -> bool:
        """Leave out the pieces with errors, but for the kernel; ``False`` if there are none."""
        dropped = self._empty(error)
        errors = Counter(name for name, *_ in error.errors)
        bad: list[tuple[_SourceFile, Collection[Piece]]] = []
        for name, line, text in error.errors:
            file = self.files.get(name)
            if file is None:
                continue
            if "#error directive" in text and not any(p.device for p in file.pieces):
                dropped = dropped or file.text != ""
                file.text, file.pieces = "", []  # of the host, and not set up for this machine
            piece = file.at(line)
            if piece is None or piece in file.gone:
                continue
            body = file.text.find("{", piece.start, piece.end)
            head = piece.start, piece.end if body < 0 else body
            if piece.device and self.entry.search(file.text, *head):
                continue  # the kernel: its errors may follow from others
            if not piece.function:
                self.causes.setdefault(file.text[piece.start : piece.end], text)
            hosts = errors[name] > HOST_HEADER and not any(p.device for p in file.pieces)
            bad.append((file, file.pieces if hosts else (self._part(file, piece, line),)))
        for file, gone in bad:
            file.gone.update(gone)
        return dropped or bool(bad)

    def _replaced(self) -> str:
        """The name of a function or specialization that is left out while code that is kept uses
        the name: another overload, or the template itself, would silently take its place."""
        kept = "\n".join(_code(file.left, ("comment",)) for file in self.files.values())
        for file in self.files.values():
            for piece in file.gone:
                if piece.function and not piece.device:
                    continue  # of the host
                name = _replaceable(file.text[piece.start : piece.end], piece.function)
                if name and re.search(rf"{re.escape(name)}\s*[<(]", kept):
                    return name
        return ""

    def _part(self, file: _SourceFile, whole: Piece, line: int) -> Piece:
        """What to leave out of a piece with an error: of a class with code of the device, or from
        which another is derived, one member of the host; else all."""
        found = members(file.text, whole, self.marks)
        here = file.at(line, [member for member in found if member not in file.gone])
        if here is None or here.device or not here.function:
            return whole
        name = re.search(r"(\w+)\s*[:{]", file.text[whole.start : whole.end])
        derived = name and rf":\s*(?:public\s+)?{name[1]}\b[^;]*{{"
        needed = any(m.device for m in found) or (derived and re.search(derived, file.left))
        return here if needed else whole

    def _empty(self, error: nvrtc.Rejected) -> bool:
        """Take headers of CUDA's for the host to be empty, where errors are in them."""
        texts = [file.text for file in self.files.values()]
        wanted = {name for text in texts for name in included_names(text)}
        before = len(self.hosts)
        for place, *_ in error.errors:
            for folder in cuda_headers():
                if Path(place).is_relative_to(folder):
                    top = Path(place).relative_to(folder).parts[0]
                    found = {n for n in wanted if n.split("/")[0] == top} - set(self.hosts)
                    self.hosts.update(dict.fromkeys(found, Path(place).name))
        return len(self.hosts) > before

    def _in_device_code(self, error: nvrtc.Rejected) -> list[str]:
        """The errors in code of the device, or in a texture; unknown names first, as they cause
        others."""
        found = []
        for name, line, text in error.errors:
            file = self.files.get(name)
            piece = None if file is None else file.at(line)
            if piece is None or file is None:
                continue
            if piece.device or file.text.startswith("texture", piece.start):
                found.append(text.strip())
        first = nvrtc.NO_MEMBER, "is undefined"
        return sorted(found, key=lambda text: [not re.search(p, text) for p in first])


def _replaceable(text: str, function: bool) -> str:
    """The name of a function, or of a type that is a template's specialization; else empty."""
    head = _ATTRIBUTES.sub("", _code(text)).partition("{")[0]
    if function:
        form = r"(operator\s*[^\s\w(]+|\w+)\s*(?:<(?:[^<>()]|<[^<>()]*>)*>)?\s*\("
    else:
        form = r"\b(?:struct|class|union)\s+([\w:]+)\s*<"
    found = re.search(form, head)
    return found[1].rpartition("::")[2] if found else ""


def _missing(texts: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """File and line of the names that are included and that no folder has."""
    folders = cuda_headers()
    return {
        name: (file, line)
        for file, text in texts.items()
        for name, line in included_names(text).items()
        if name not in {*STANDINS, *texts}
        and not any((folder / name).is_file() for folder in folders)
    }
