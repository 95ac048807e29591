"""Rows about the system around the GPUs: CPU, other load, folders."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from nqbench.doctor.report import Row

GOVERNORS: Final = "sys/devices/system/cpu"
BUSY_SHARE: Final = 0.5
"""Load of the last minute per core above which the launching thread may wait for a core."""
COUNTED_FILES: Final = 20_000
"""Most files of the cache that are counted: enough for any real one, in a fraction of 1 s."""
MIN_FREE_BYTES: Final = 1 << 30
"""A long study writes tens of megabytes; below 1 GiB, other programs may fill the disk first."""


def governor(root: Path) -> Row:
    """Frequency governor of the CPU cores below ``root`` (``/``)."""
    name = "CPU governor"
    files = (root / GOVERNORS).glob("cpu[0-9]*/cpufreq/scaling_governor")
    seen = sorted({text for file in files if (text := read(file))})
    if not seen:
        found = "not shown by this system (virtual machine or container)"
        return Row(name, "warning", f"{found}; CPU times may vary", "steadiness")
    if seen == ["performance"]:
        return Row(name, "ok", "performance", "steadiness")
    remedy = "sudo cpupower frequency-set -g performance"
    return Row(name, "warning", ", ".join(seen), "steadiness", remedy)


def load(cores: int, usable: int, load_1min: float) -> Row:
    """Cores and what else they do. ``usable``: cores that this process may run on."""
    name = "CPU cores"
    found = f"{usable} of {cores} usable, load {load_1min:.1f}"
    if load_1min > BUSY_SHARE * cores:
        remedy = "see what runs with: top"
        return Row(name, "warning", f"{found}: other work is running", "steadiness", remedy)
    return Row(name, "ok", found, "steadiness")


def cache(folder: Path) -> Row:
    """The compiler's cache: writable or not, and its size."""
    name = "kernel cache"
    if not _writable(folder):
        found = f"{folder} cannot be written: every run compiles everything again"
        remedy = "export NQBENCH_CACHE_DIR=/path/to/a/writable/folder"
        return Row(name, "warning", found, "speed", remedy)
    sizes = list(islice(_sizes(folder), COUNTED_FILES))
    least = "at least " if len(sizes) == COUNTED_FILES else ""
    found = f"{folder}: {least}{len(sizes)} kernels, {sum(sizes) / 2**20:.1f} MiB"
    return Row(name, "ok", found, "speed")


def results(folder: Path) -> Row:
    """The folder that results go to, which is below the current one."""
    name = "results folder"
    if not _writable(folder):
        found = f"{folder} cannot be written"
        return Row(
            name,
            "missing",
            found,
            "results",
            "change to a folder that you can write to, or give --out",
        )
    free = shutil.disk_usage(_existing(folder)).free
    found = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < MIN_FREE_BYTES:
        return Row(name, "warning", found, "results", "free some space, or give --out")
    return Row(name, "ok", found, "results")


def ceilings(results: Path) -> Row:
    """The runs of the study ``ceilings``, each valid for the GPU in its folder's name."""
    name = "ceilings"
    found = sorted(path.parent.parent.name for path in results.glob("local/cuda*/ceilings/*.json"))
    if found:
        return Row(name, "ok", f"measured on {', '.join(dict.fromkeys(found))}", "rooflines")
    remedy = "nqbench run ceilings"
    return Row(name, "missing", "no GPU has been measured from this folder", "rooflines", remedy)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _writable(folder: Path) -> bool:
    """Whether a file can be made in the folder, or the folder itself where it does not exist yet.

    Tried with a file that vanishes at once: permission bits say nothing about mounts and quotas.
    """
    folder = _existing(folder.absolute())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _sizes(folder: Path) -> Iterator[int]:
    """Sizes of all files below a folder; what vanishes meanwhile is left out."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(Path(entry.path))
            else:
                yield entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue


def read(path: Path) -> str:
    """The text of a file, without blanks around it; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
