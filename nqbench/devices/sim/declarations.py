"""Reading the declarations of a PTX module: parameters and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nqbench.devices.sim.ptx import WIDTHS, UnsupportedPtx, Variable, Where

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
