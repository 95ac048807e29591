"""PTX text -> a kernel.

Names declared in a nested scope (inline assembly, the parameters of a call) are made unique, and
calls are replaced, so that everything after the parser sees one flat kernel.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from pathlib import Path

from nqbench.compiler.bindings import cuda_headers
from nqbench.simulator import calls, ptx
from nqbench.simulator.cfg import is_barrier, is_collective

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', re.MULTILINE)
_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)"
    r"|(?P<loc>\.loc\s+(\d+\s+\d+\s+\d+)(?:[^\n]*inlined_at\s+(\d+\s+\d+\s+\d+))?)[^\n]*"
    r"|(?P<brace>[{}])"
    r"|(?P<table>[\w$]+)\s*:\s*\.branchtargets\s+(?P<targets>[^;]*);"
    r"|(?P<call>[\w$]+\s*:\s*\.call(?:prototype|targets)[^;]*;)"
    r"|(?P<label>[\w$]+)\s*:(?!:)"
    r"|(?P<statement>[^;]+);"
)
"""What stands in a body, one after the other."""
_COMMENT = re.compile(r"//[^\n]*")
_OPCODE = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_BOUNDS = re.compile(r"\.(?:maxntid|reqntid)\s+([\d, ]+)")
_REG = re.compile(r"\.reg\s*\.(\w+)\s+(.*)", re.DOTALL)
_COMMA = re.compile(r",(?![^\[{(]*[\]})])")
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)U?$")
_FLOATS = {("0f", 10): "f32", ("0d", 18): "f64"}
"""Floats are written as their bits; the type by how they begin and how long they are."""
_PLACE = re.compile(r"([\w$%.]+)\s*\+\s*(-?\w+)$")


def parse(text: str, entry: str) -> ptx.PtxKernel:
    """Read the kernel called ``entry`` (mangled) out of a PTX module, with all that it calls.

    Raises :class:`UnsupportedPtx` for a missing entry or text it cannot read.
    """
    module = _Module(text)
    kernel = module.kernel(entry)
    calls.flatten(kernel, module.function)
    return kernel


class _Module:
    def __init__(self, text: str) -> None:
        self.text = text
        self.files = {number: Path(path) for number, path in _FILE.findall(text)}
        cuda = {*cuda_headers()}
        self.own = {n for n, p in self.files.items() if p.is_file() and not {*p.parents} & cuda}
        self.statements: dict[str, tuple[int, re.Match[str]]] = {}
        for found in _DECLARED.finditer(text):
            match = VARIABLE.match(_COMMENT.sub("", found[1]).strip())
            if match is not None:
                self.statements[match.group(4)] = text.count("\n", 0, found.start(1)) + 1, match
        self.bodies = {match[2]: match for match in _FUNCTION.finditer(text)}
        self.functions: dict[str, ptx.PtxKernel] = {}

    def kernel(self, entry: str) -> ptx.PtxKernel:
        found = re.search(rf"^.*\.entry\s+{re.escape(entry)}\s*\(", self.text, re.MULTILINE)
        if found is None:
            raise ptx.UnsupportedPtx(f"entry {entry} is not in the PTX", ptx.Where(1))
        return self._read(entry, found.end() - 1, "")

    def function(self, name: str) -> ptx.PtxKernel | None:
        """A function with a body, or ``None``."""
        if name not in self.functions and name in self.bodies:
            match = self.bodies[name]
            self.functions[name] = self._read(name, match.end() - len(match[3]), match[1] or "")
        return self.functions.get(name)

    def _read(self, name: str, start: int, gives: str) -> ptx.PtxKernel:
        """Read a kernel or function whose parameters begin at ``start``."""
        line, body = self.text.count("\n", 0, start) + 1, self.text.index("{", start)
        places, nbytes = parameters(self.text[start:body], line)
        kernel = ptx.PtxKernel(name, places, nbytes, returns=tuple(parameters(gives, line)[0]))
        if bounds := _BOUNDS.search(self.text, start, body):
            kernel.most_threads = prod(map(int, bounds[1].split(",")))
        end = _Body(kernel, self.text, self.files, self.own).read(body)
        used = set(re.findall(r"[\w$]+", self.text[body:end]))
        self._variables(kernel, [name for name in self.statements if name in used])
        if ptx.RESERVED[1:] in used:
            kernel.variables[ptx.RESERVED] = ptx.PtxVariable(ptx.RESERVED, "shared", 8, 288)
        return kernel

    def _variables(self, kernel: ptx.PtxKernel, names: list[str]) -> None:
        """Those of the module that a body or another variable mentions."""
        for name in names:
            if name in kernel.variables or name not in self.statements:
                continue
            line, match = self.statements[name]
            kernel.variables[name] = variable = read_variable(match, line)
            self._variables(kernel, [reference.name for _, reference in variable.references])


class _Body:
    def __init__(
        self, kernel: ptx.PtxKernel, text: str, files: dict[str, Path], own: set[str]
    ) -> None:
        self.kernel = kernel
        self.text = text
        self.scopes: list[dict[str, ptx.Register]] = []
        self.starts: list[int] = []
        """Where in the body each scope begins."""
        self.parameters: dict[str, str] = {}
        self.opened = 0
        self.files = files
        self.own = own
        self.calls: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Of each place in a function that is inlined, where it is called."""
        self.file = ""
        self.source_line = 0

    def _where(self, line: int) -> ptx.Where:
        return ptx.Where(line, self.file, self.source_line)

    def read(self, start: int) -> int:
        """Read all statements from the opening brace on; returns where the body ends."""
        line, at = self.text.count("\n", 0, start) + 1, start
        for match in _TOKEN.finditer(self.text, start):
            kind = match.lastgroup
            if kind == "space":
                continue
            line, at = line + self.text.count("\n", at, match.start()), match.start()
            if kind == "brace":
                if match[0] == "{":
                    self.scopes.append({})
                    self.starts.append(len(self.kernel.body))
                    self.opened += 1
                else:
                    self.scopes.pop()
                    self._close(self.starts.pop())
                if not self.scopes:
                    return match.end()
            elif kind == "loc":
                self._locate(*(tuple(place.split()) for place in match.groups("")[2:4]))
            elif kind == "targets":
                names = match["targets"].split(",")
                self.kernel.targets[match["table"]] = tuple(name.strip() for name in names)
            elif kind == "label":
                self.kernel.body.append(ptx.Label(match["label"]))
            elif kind == "statement":
                self._statement(_COMMENT.sub("", match["statement"]).strip(), line)
        raise ptx.UnsupportedPtx("the entry has no end", ptx.Where(line))

    def _locate(self, place: tuple[str, ...], call: tuple[str, ...]) -> None:
        """Code of a place follows: in a function of CUDA's that is inlined, that of its call."""
        if place[1] == "0":
            return  # code without a line of its own: keep the last known one
        outer, seen = place, set[tuple[str, ...]]()
        self.calls[place] = call
        while outer and outer[0] not in self.own:
            if outer in seen:
                return  # of a template that calls itself: the same
            seen.add(outer)
            outer = self.calls.get(outer, ())
        file, line, _ = outer or place
        self.file, self.source_line = self.files.get(file, Path()).name, int(line)

    def _close(self, start: int) -> None:
        """The scope from there on ends: give its labels names of their own."""
        inside = self.kernel.body[start:]
        labels = {i.name for i in inside if isinstance(i, ptx.Label) and "@" not in i.name}
        if not labels or not self.scopes:
            return
        own = {name: ptx.Name(f"{name}@{start}") for name in labels}
        for at, i in enumerate(inside, start):
            if isinstance(i, ptx.Label):
                self.kernel.body[at] = ptx.Label(own[i.name].name if i.name in own else i.name)
            elif i.opcode == "bra":
                to = (own.get(o.name, o) if isinstance(o, ptx.Name) else o for o in i.operands)
                self.kernel.body[at] = replace(i, operands=tuple(to))

    def _statement(self, text: str, line: int) -> None:
        if text.startswith(".reg"):
            match = _REG.match(text)
            if match is None or match.group(1) not in ptx.WIDTHS:
                raise ptx.UnsupportedPtx(f"register declaration {text!r}", self._where(line))
            width = ptx.WIDTHS[match.group(1)]
            suffix = f"@{self.opened}" if len(self.scopes) > 1 else ""
            for name in (part.strip() for part in match.group(2).split(",")):
                counted = re.match(r"(.+)<(\d+)>$", name)
                names = [f"{counted[1]}{i}" for i in range(int(counted[2]))] if counted else [name]
                self.scopes[-1].update((n, ptx.Register(n + suffix, width)) for n in names)
        elif not text.startswith("."):
            self.kernel.body += self._around(self._instruction(text, line))
        elif (variable := VARIABLE.match(text)) is not None:
            self.kernel.variables[variable.group(4)] = read_variable(variable, line)
        elif text.startswith(".param"):
            name = _PARAM.findall(text)[0][2]
            self.parameters[name] = f"{name}@{self.opened}"
        elif not text.startswith(".pragma"):
            raise ptx.UnsupportedPtx(f"directive {text.split()[0]}", self._where(line))

    def _register(self, name: str) -> ptx.Register | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _instruction(self, text: str, line: int) -> ptx.Instruction:
        match = _OPCODE.match(text)
        if match is None:
            raise ptx.UnsupportedPtx(f"statement {text!r}", self._where(line))
        negated, guard_name, opcode, rest = match.groups()
        guard = self._register(guard_name) if guard_name else None
        if guard_name and guard is None:
            raise ptx.UnsupportedPtx(f"guard {guard_name} is not declared", self._where(line))
        words = opcode.split(".")
        if f"{opcode}.".startswith(tuple(REFUSED)):
            why = next(why for name, why in REFUSED.items() if f"{opcode}.".startswith(name))
            raise ptx.UnsupportedPtx(f"{opcode}: {why} not simulated;", self._where(line))
        parts = _split(rest)
        try:
            operands = tuple(self._operand(part) for part in parts)
        except ValueError as error:
            raise ptx.UnsupportedPtx(f"operand in {text!r}: {error}", self._where(line)) from None
        return ptx.Instruction(
            words[0], tuple(words[1:]), operands, guard, bool(negated), self._where(line)
        )

    def _around(self, i: ptx.Instruction) -> list[ptx.Instruction | ptx.Label]:
        """A call, or what waits for other threads, with a branch in place of its predicate."""
        if i.guard is None or not (i.opcode == "call" or is_barrier(i) or is_collective(i)):
            return [i]
        after, negated = f"$around{len(self.kernel.body)}", not i.guard_negated
        to = (ptx.Name(after),)
        skip = replace(i, opcode="bra", modifiers=(), operands=to, guard_negated=negated)
        return [skip, replace(i, guard=None, guard_negated=False), ptx.Label(after)]

    def _operand(self, text: str) -> ptx.Operand:
        if text.startswith("["):
            inner = text.strip("[]").strip()
            place = _PLACE.match(inner)
            base, offset = (place[1], int(place[2], 0)) if place else (inner, 0)
            return ptx.Memory(self._operand(base), offset)
        if text.startswith(("(", "{")):
            return ptx.Vector(tuple(self._operand(part) for part in _split(text.strip("(){}"))))
        if "|" in text:
            return ptx.Vector(tuple(self._operand(part.strip()) for part in text.split("|")))
        if text.startswith("!"):
            inner_operand = self._operand(text[1:].strip())
            if not isinstance(inner_operand, ptx.Register):
                raise ValueError("only a predicate register can be negated")
            return ptx.Negated(inner_operand)
        if _INTEGER.match(text):
            return ptx.Immediate(int(text.rstrip("U"), 0))
        if (kind := _FLOATS.get((text[:2].lower(), len(text)))) is not None:
            return ptx.Immediate(int(text[2:], 16), kind)
        register = self._register(text)
        if register is not None:
            return register
        place = _PLACE.match(text)
        if place:
            return ptx.Name(self.parameters.get(place[1], place[1]), int(place[2], 0))
        if re.match(r"[%$\w.]+$", text):
            return ptx.Name(self.parameters.get(text, text))
        raise ValueError(f"cannot read {text!r}")


def _split(text: str) -> list[str]:
    """Split at commas that are outside brackets."""
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(shared|local|global|const)\s+"
    r"(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$%]+)((?:\[\d*\])*)"
    r"\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_DECLARED = re.compile(
    r"^[ \t]*((?:\.(?:visible|extern|weak|common)\s+)*\.(?:shared|global|const)\s[^;]*);",
    re.MULTILINE,
)
"""Of variables of the module, and those of bodies, which come first there."""
_FUNCTION = re.compile(
    r"^[ \t]*(?:\.(?:visible|weak|extern)\s+)*\.func\s*(\([^)]*\))?\s*([\w$]+)\s*"
    r"((?:\([^)]*\))?\s*(?:\.\w+\s*)*\{)",
    re.MULTILINE,
)
REFUSED = {f"{opcode}.": why for why, names in ptx.FAMILIES["refused"].items() for opcode in names}
"""How instructions begin whose operands have forms of their own, or that need other hardware."""
_REFERENCE = re.compile(r"(?:generic\()?([A-Za-z_$][\w$]*)\)?\s*(?:\+\s*(\w+))?$")
# ``.ptr`` says what a pointer points to; the compiler writes it for sm_100 and later.
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+"
    r"(?:\.ptr\s+(?:\.(?:const|global|local|shared)\s+)?(?:\.align\s+\d+\s+)?)?"
    r"([^\s,\[\)]+)(?:\[(\d+)\])?"
)


def parameters(header: str, line: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Offsets and sizes by name: every parameter is aligned to its own size."""
    found: dict[str, tuple[int, int]] = {}
    offset = 0
    for align, kind, name, length in _PARAM.findall(header):
        if kind not in ptx.WIDTHS:
            raise ptx.UnsupportedPtx(f"parameter type .{kind}", ptx.Where(line))
        nbytes = ptx.WIDTHS[kind] // 8 * int(length or 1)
        step = int(align or ptx.WIDTHS[kind] // 8)
        offset = -(-offset // step) * step
        found[name] = (offset, nbytes)
        offset += nbytes
    return found, offset


def read_variable(match: re.Match[str], line: int) -> ptx.PtxVariable:
    space, align, kind, name, extents, initial = match.groups()
    if kind not in ptx.WIDTHS:
        raise ptx.UnsupportedPtx(f"variable {name} of type .{kind}", ptx.Where(line))
    width = ptx.WIDTHS[kind] // 8
    count = 1
    for extent in re.findall(r"\[(\d*)\]", extents):
        count *= int(extent or 0)
    data, references = b"", []
    if initial:
        words = initial.strip().strip("{}").replace("{", "").replace("}", "").split(",")
        try:
            for word in map(str.strip, words):
                reference = _REFERENCE.match(word)
                if reference is not None:
                    offset = int(reference[2] or "0", 0)
                    references.append((len(data), ptx.Name(reference[1], offset)))
                number = 0
                if word[:2].lower() in ("0f", "0d"):
                    number = int(word[2:], 16)  # the bits of a float
                elif reference is None:
                    number = int(word, 0)
                data += (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        except ValueError:
            raise ptx.UnsupportedPtx(f"initial value of variable {name}", ptx.Where(line)) from None
    nbytes = count * width
    return ptx.PtxVariable(name, space, int(align or width), nbytes, data, tuple(references))
