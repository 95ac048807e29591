"""PTX text -> a kernel.

Covers what a compiler emits for a kernel whose calls are all inlined. Names declared in a nested
scope (inline assembly) are made unique, so that everything after the parser sees one flat kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nqbench.devices.sim.ptx import (
    NO_CALLS,
    WIDTHS,
    Immediate,
    Instruction,
    Kernel,
    Label,
    Memory,
    Name,
    Negated,
    Operand,
    Pair,
    Register,
    UnsupportedPtx,
    Variable,
    Vector,
    Where,
)

_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"(?:[^"]*/)?([^"/]+)"', re.MULTILINE)
_LABEL = re.compile(r"\s*([\w$]+)\s*:(?!:)\s*")
_OPCODE = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_REG = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)U?$")
_PLACE = re.compile(r"([\w$%.]+)\s*\+\s*(-?\w+)$")


def parse(text: str, entry: str) -> Kernel:
    """Read the kernel called ``entry`` (mangled) out of a PTX module.

    Raises :class:`UnsupportedPtx` for a missing entry or text it cannot read.
    """
    lines = text.split("\n")
    start = next(
        (
            i
            for i, line in enumerate(lines)
            if re.search(rf"\.entry\s+{re.escape(entry)}\s*\(", line)
        ),
        None,
    )
    if start is None:
        raise UnsupportedPtx(f"entry {entry} is not in the PTX", Where(1))
    body = next(i for i in range(start, len(lines)) if lines[i].lstrip().startswith("{"))
    header = "\n".join(lines[start:body])
    places, nbytes = parameters(header[header.index("(") :], start + 1)
    kernel = Kernel(entry, places, nbytes)
    end = _Body(kernel, lines, body).read()
    used = set(re.findall(r"[\w$]+", "\n".join(lines[body:end])))
    for line, statement in module_statements(lines):
        match = VARIABLE.match(statement)
        if match is not None and match.group(4) in used:
            kernel.variables[match.group(4)] = read_variable(match, line)
    return kernel


class _Body:
    """Reads the statements between the braces of one entry."""

    def __init__(self, kernel: Kernel, lines: list[str], start: int) -> None:
        self.kernel = kernel
        self.lines = lines
        self.start = start
        self.scopes: list[dict[str, Register]] = []
        self.opened = 0
        self.files = dict(_FILE.findall("\n".join(lines)))
        self.file = ""
        self.source_line = 0

    def _where(self, line: int) -> Where:
        return Where(line, self.file, self.source_line)

    def read(self) -> int:
        """Read all statements; returns the index of the line with the closing brace."""
        pending, first, table = "", 0, ""
        for number in range(self.start, len(self.lines)):
            raw = self.lines[number].split("//", 1)[0]
            if not pending:
                loc = _LOC.match(raw)
                if loc:
                    # Line 0 marks code without a line of its own: keep the last known one.
                    if int(loc.group(2)):
                        self.file = self.files.get(loc.group(1), "")
                        self.source_line = int(loc.group(2))
                    continue
            rest = raw.strip()
            while rest:
                if not pending:
                    if rest[0] in "{}":
                        self._scope(rest[0])
                        if not self.scopes:
                            return number
                        rest = rest[1:].lstrip()
                        continue
                    label = _LABEL.match(rest)
                    if label:
                        rest = rest[label.end() :]
                        if rest.startswith(".branchtargets"):
                            table = label.group(1)
                        else:
                            self.kernel.body.append(Label(label.group(1)))
                        continue
                    first = number + 1
                head, semicolon, rest = rest.partition(";")
                pending += " " + head
                rest = rest.lstrip()
                if semicolon:
                    self._statement(pending.strip(), first, table)
                    pending, table = "", ""
        raise UnsupportedPtx("the entry has no end", Where(self.start + 1))

    def _scope(self, brace: str) -> None:
        if brace == "{":
            self.scopes.append({})
            self.opened += 1
        else:
            self.scopes.pop()

    def _statement(self, text: str, line: int, table: str) -> None:
        if text.startswith(".branchtargets"):
            names = text.removeprefix(".branchtargets")
            self.kernel.targets[table] = tuple(n.strip() for n in names.split(","))
            return
        if text.startswith(".reg"):
            self._declare(text, line)
            return
        if text.startswith("."):
            variable = VARIABLE.match(text)
            if variable is not None:
                self.kernel.variables[variable.group(4)] = read_variable(variable, line)
            elif text.startswith(".param"):
                raise UnsupportedPtx(f"a call ({NO_CALLS})", self._where(line))
            elif not text.startswith(".pragma"):
                raise UnsupportedPtx(f"directive {text.split()[0]}", self._where(line))
            return
        self.kernel.body.append(self._instruction(text, line))

    def _declare(self, text: str, line: int) -> None:
        match = _REG.match(text)
        if match is None or match.group(1) not in WIDTHS:
            raise UnsupportedPtx(f"register declaration {text!r}", self._where(line))
        width = WIDTHS[match.group(1)]
        suffix = f"@{self.opened}" if len(self.scopes) > 1 else ""
        for name in (part.strip() for part in match.group(2).split(",")):
            counted = re.match(r"(.+)<(\d+)>$", name)
            names = [f"{counted[1]}{i}" for i in range(int(counted[2]))] if counted else [name]
            self.scopes[-1].update((n, Register(n + suffix, width)) for n in names)

    def _register(self, name: str) -> Register | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _instruction(self, text: str, line: int) -> Instruction:
        match = _OPCODE.match(text)
        if match is None:
            raise UnsupportedPtx(f"statement {text!r}", self._where(line))
        negated, guard_name, opcode, rest = match.groups()
        guard = self._register(guard_name) if guard_name else None
        if guard_name and guard is None:
            raise UnsupportedPtx(f"guard {guard_name} is not declared", self._where(line))
        words = opcode.split(".")
        try:
            operands = tuple(self._operand(part) for part in _split(rest))
        except ValueError as error:
            raise UnsupportedPtx(f"operand in {text!r}: {error}", self._where(line)) from None
        return Instruction(
            words[0], tuple(words[1:]), operands, guard, bool(negated), self._where(line)
        )

    def _operand(self, text: str) -> Operand:
        if text.startswith("["):
            inner = text.strip("[]").strip()
            place = _PLACE.match(inner)
            base, offset = (place[1], int(place[2], 0)) if place else (inner, 0)
            return Memory(self._operand(base), offset)
        if text.startswith("{"):
            return Vector(tuple(self._operand(part) for part in _split(text.strip("{}"))))
        if "|" in text:
            first, second = text.split("|")
            return Pair(self._operand(first.strip()), self._operand(second.strip()))
        if text.startswith("!"):
            inner_operand = self._operand(text[1:].strip())
            if not isinstance(inner_operand, Register):
                raise ValueError("only a predicate register can be negated")
            return Negated(inner_operand)
        if _INTEGER.match(text):
            return Immediate(int(text.rstrip("U"), 0))
        if text[:2] in ("0f", "0F") and len(text) == 10:
            return Immediate(int(text[2:], 16), "f32")
        if text[:2] in ("0d", "0D") and len(text) == 18:
            return Immediate(int(text[2:], 16), "f64")
        register = self._register(text)
        if register is not None:
            return register
        place = _PLACE.match(text)
        if place:
            return Name(place[1], int(place[2], 0))
        if re.match(r"[%$\w.]+$", text):
            return Name(text)
        raise ValueError(f"cannot read {text!r}")


def _split(text: str) -> list[str]:
    """Split at commas that are outside brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    if current.strip():
        parts.append(current.strip())
    return parts


VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(shared|local|global|const)\s+"
    r"(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$%]+)((?:\[\d*\])*)"
    r"\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_PARAM = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([^\s,\[\)]+)(?:\[(\d+)\])?")


def parameters(header: str, line: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Offsets and sizes by name: every parameter is aligned to its own size."""
    found: dict[str, tuple[int, int]] = {}
    offset = 0
    for align, kind, name, length in _PARAM.findall(header):
        if kind not in WIDTHS:
            raise UnsupportedPtx(f"parameter type .{kind}", Where(line))
        nbytes = WIDTHS[kind] // 8 * int(length or 1)
        step = int(align or WIDTHS[kind] // 8)
        offset = -(-offset // step) * step
        found[name] = (offset, nbytes)
        offset += nbytes
    return found, offset


def module_statements(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Variable declarations outside functions, with the line they start on."""
    depth = 0
    pending, first = "", 0
    for number, raw in enumerate(lines, 1):
        line = raw.split("//", 1)[0].strip()
        if depth == 0 and (pending or re.match(r"(\.\w+\s+)*\.(shared|global|const)\s", line)):
            first = first or number
            pending += " " + line
            if line.endswith(";"):
                yield first, pending.strip().rstrip(";")
                pending, first = "", 0
            continue
        depth += line.count("{") - line.count("}")


def read_variable(match: re.Match[str], line: int) -> Variable:
    space, align, kind, name, extents, initial = match.groups()
    if kind not in WIDTHS:
        raise UnsupportedPtx(f"variable {name} of type .{kind}", Where(line))
    width = WIDTHS[kind] // 8
    count = 1
    for extent in re.findall(r"\[(\d*)\]", extents):
        count *= int(extent or 0)
    data = b""
    if initial:
        words = initial.strip().strip("{}").replace("{", "").replace("}", "").split(",")
        try:
            data = b"".join(_initial(word.strip(), width) for word in words)
        except ValueError:
            raise UnsupportedPtx(f"initial value of variable {name}", Where(line)) from None
    return Variable(name, space, int(align or width), count * width, data)


def _initial(word: str, width: int) -> bytes:
    if word[:2] in ("0f", "0F", "0d", "0D"):
        return int(word[2:], 16).to_bytes(width, "little")
    return (int(word, 0) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
