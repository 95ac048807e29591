"""Sources compiled without a plan around them."""

from __future__ import annotations

from pathlib import Path

from nqbench.compiler.compile import compile_request
from nqbench.compiler.compiled import Compiled
from nqbench.compiler.nvrtc import CompileRequest


def compile_ptx(source: Path, entry: str, arch: str, options: tuple[str, ...] = ()) -> Compiled:
    return compile_request(CompileRequest("ptx", source, entry, arch, options))


def compile_cubin(
    source: Path,
    entry: str,
    arch: str,
    options: tuple[str, ...] = (),
    *,
    device_launch: bool = False,
) -> Compiled:
    return compile_request(CompileRequest("cubin", source, entry, arch, options, device_launch))
