"""What a result depends on besides the device: packages, sources, the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from nqbench.system.machine import cpu_count, cpu_model
from nqbench.system.versions import PACKAGE, __version__, installed

SOURCE_SUFFIXES: Final = (".py", ".cu", ".cuh", ".h", ".yaml")
PACKAGES: Final = (
    *("numpy", "scipy", "numba", "llvmlite", "tbb", "pandas"),
    *("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu13"),
    *("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    *("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    *("pycuda", "nvidia-ml-py"),
)
GIT_LIMIT_S: Final = 5.0


@cache
def versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Versions of the installed packages among ``names``."""
    found = {name: installed(name) for name in names}
    return {name: version for name, version in found.items() if version}  # some are optional


def digest(paths: Iterable[Path]) -> str:
    """Hash of the names and contents of files, and of the sources in folders."""
    files: set[Path] = set()
    for path in paths:
        inside = path.rglob("*") if path.is_dir() else (path,)
        files |= {f for f in inside if f.suffix in SOURCE_SUFFIXES and f.is_file()}
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return total.hexdigest()[:16]


@cache
def source_hash() -> str:
    """Hash of all of nqbench's sources, kernels included."""
    return digest((PACKAGE,))


def describe() -> dict[str, Any]:
    """The environment of a run, for its manifest (JSON).

    A hash of its name identifies the machine, since manifests are published.
    """
    host = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    known = "SC_PHYS_PAGES" in os.sysconf_names
    return {
        "host": host,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else None,
        "python": platform.python_version(),
        "nqbench": __version__,
        "packages": versions(),
        "source_sha256": source_hash(),
        "git": _git(),
    }


def _git() -> Mapping[str, Any] | None:
    """Commit of nqbench's own checkout, and whether it has local changes; ``None`` outside one."""
    if not (PACKAGE.parent / ".git").exists():
        return None
    commit = _ask_git("rev-parse", "HEAD")
    changes = _ask_git("status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "changed": bool(changes)}


def _ask_git(*arguments: str) -> str | None:
    command = ["git", "-C", str(PACKAGE.parent), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # no git here: the source hash still says what was run
    return done.stdout.strip() if done.returncode == 0 else None
