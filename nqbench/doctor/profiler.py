"""Rows about ncu, NVIDIA's kernel profiler, and whether it may read the hardware counters."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from nqbench.doctor.report import Row

USUAL_PLACES: Final = (
    "usr/local/cuda*/bin/ncu",
    "opt/nvidia/nsight-compute/*/ncu",
)
PARAMETERS: Final = "proc/driver/nvidia/params"
ADMIN_ONLY: Final = re.compile(r"^RmProfilingAdminOnly:\s*(\d)", re.MULTILINE)
CAPABILITIES: Final = re.compile(r"^CapEff:\s*([0-9a-fA-F]+)", re.MULTILINE)
SUFFICIENT: Final = {"CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38}
"""Linux capabilities, either of which lets a process read the counters, with their bit numbers."""
PERMIT: Final = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'"
    " | sudo tee /etc/modprobe.d/nvidia-profiling.conf   (then reboot)"
)


def ncu(root: Path, path: str | None) -> Row:
    """Where ncu is. ``path`` is a search path as in ``$PATH``."""
    found = shutil.which("ncu", path=path or "")
    if found:
        return Row("ncu", "ok", found, "counters")
    elsewhere = sorted(file for place in USUAL_PLACES for file in root.glob(place))
    if elsewhere:
        newest = elsewhere[-1]
        remedy = f'export PATH="{newest.parent}:$PATH"'
        return Row("ncu", "missing", f"{newest} is not on the PATH", "counters", remedy)
    remedy = "install NVIDIA Nsight Compute: https://developer.nvidia.com/nsight-compute"
    return Row("ncu", "missing", "not installed", "counters", remedy)


def permission(root: Path) -> Row:
    """Whether this user may read the counters, as far as the driver's parameters tell."""
    name = "counter permission"
    parameters = _text(root / PARAMETERS)
    held = _capabilities(_text(root / "proc/self/status"))
    match = ADMIN_ONLY.search(parameters)
    if match is None:
        found = "the driver does not say who may read the counters"
        return Row(name, "warning", found, "counters", "try: ncu --query-metrics")
    if match[1] == "0":
        return Row(name, "ok", "everybody may read the counters", "counters")
    if held:
        found = f"administrators only, and this process is one ({held[0]})"
        return Row(name, "ok", found, "counters")
    found = "only administrators may read the counters (ERR_NVGPUCTRPERM)"
    return Row(name, "missing", found, "counters", PERMIT)


def _capabilities(status: str) -> list[str]:
    """Those capabilities of this process that suffice. Root in a container may have neither."""
    match = CAPABILITIES.search(status)
    mask = int(match[1], 16) if match else 0
    return [name for name, bit in SUFFICIENT.items() if mask >> bit & 1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
