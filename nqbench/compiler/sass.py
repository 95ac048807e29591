"""Static counts of machine code: a cubin's SASS, by NVIDIA's disassembler where it is installed.

``nvdisasm`` comes with the pip package ``nvidia-cuda-nvdisasm`` (extra ``sass``) or a CUDA toolkit.
It needs no GPU and no driver.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nqbench.errors import DeviceUnavailable

PACKAGE: Final = "nvidia-cuda-nvdisasm"
TIME_LIMIT_S: Final = 60.0

_LINE: Final = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)\s*(.*?) ;")
_ACCESS: Final = re.compile(r"^(LD|ST)([SGL])\b")
_WIDTH: Final = re.compile(r"\.(128|64|U8|S8|U16|S16)\b")
_PTX: Final = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z][\w.:]*(?:\s[^;]*)?;")


@dataclass(frozen=True, slots=True)
class SassCounts:
    """``accesses`` by opcode and bits, e.g. ``{"LDS.128": 2, "STG.32": 1}``: loads and stores of
    shared (S), global (G) and local memory (L). ``branches`` are ``BRA`` and ``BRX``."""

    instructions: int
    branches: int
    accesses: Counter[str]


def disassembler() -> Path:
    """Where ``nvdisasm`` is. Raises ``DeviceUnavailable`` if it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = (spec and spec.submodule_search_locations) or ()
    found = [path for folder in folders for path in sorted(Path(folder).glob("*/bin/nvdisasm*"))]
    if found:
        return found[-1]
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    places = [os.environ.get("PATH", ""), *([f"{toolkit}/bin"] if toolkit else [])]
    if on_path := shutil.which("nvdisasm", path=os.pathsep.join(places)):
        return Path(on_path)
    raise DeviceUnavailable(
        f"SASS needs nvdisasm, which is not installed; pip install {PACKAGE} (or 'nqbench[sass]')"
    )


def disassemble(image: bytes, symbol: str) -> list[str]:
    """The machine instructions of a kernel, one text each, without what pads the end.

    Raises ``DeviceUnavailable`` if ``nvdisasm`` is missing or fails.
    """
    program = disassembler()
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(image)
        try:
            done = subprocess.run(
                [program, "-c", cubin], capture_output=True, text=True, timeout=TIME_LIMIT_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeviceUnavailable(f"{program} cannot be run: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise DeviceUnavailable(f"{program} failed: {said or done.returncode}")
    return kernel_of(done.stdout, symbol)


def kernel_of(text: str, symbol: str) -> list[str]:
    """The instructions of a kernel in nvdisasm's text. A jump to itself and ``NOP`` pad its end;
    they have no space before the semicolon."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(".text."):
            inside = line.strip() == f".text.{symbol}:"
        elif inside and (match := _LINE.match(line)):
            found.append(f"{match[1]} {match[2]}".strip())
    return found


def sass_counts(image: bytes, symbol: str) -> SassCounts:
    """Count a kernel's machine instructions. Raises ``DeviceUnavailable`` like ``disassemble``."""
    lines = disassemble(image, symbol)
    accesses: Counter[str] = Counter()
    for line in lines:
        opcode = line.split()[0]
        if match := _ACCESS.match(opcode):
            width = _WIDTH.search(opcode)
            bits = int(width[1].lstrip("US")) if width else 32
            accesses[f"{match[0]}.{bits}"] += 1
    branches = sum(line.split(".")[0].split()[0] in ("BRA", "BRX") for line in lines)
    return SassCounts(len(lines), branches, accesses)


def ptx_instructions(text: str, symbol: str) -> int:
    """Instructions of a kernel in PTX text."""
    start = re.search(rf"\.entry\s+{re.escape(symbol)}\b", text)
    body = text[start.end() :] if start else ""
    end = body.find("\n}")
    return sum(bool(_PTX.match(line)) for line in body[:end].splitlines())
