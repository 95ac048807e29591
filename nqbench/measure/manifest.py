"""What a run's manifest says: the study, the device, packages, sources and the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nqbench.errors import FolderRefused
from nqbench.facts import DeviceFacts
from nqbench.measure.sampling import LONG_LAUNCH_S, Policy
from nqbench.measure.worker.messages import Hello
from nqbench.point import Point
from nqbench.system.files import digest
from nqbench.system.machine import cpu_count, cpu_model
from nqbench.system.versions import PACKAGE, __version__, installed, required

if TYPE_CHECKING:
    from nqbench.study.model import Study

SOURCE_SUFFIXES: Final = (".py", ".cu", ".cuh", ".h", ".yaml")
COMPILERS: Final = (
    *("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu13"),
    *("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    *("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    "pycuda",
)
CPU_COMPILERS: Final = ("numba", "llvmlite", "numpy")
"""They make the jobs of a kernel (its ``split`` phase), run the simulator and the CPU systems."""
CPU_LIBRARIES: Final = ("tbb",)
"""They take part in some CPU systems only."""
PACKAGES: Final = (
    *("scipy", "pandas", "nvidia-ml-py"),
    *(*COMPILERS, *CPU_COMPILERS, *CPU_LIBRARIES),
)
DESCRIBING: Final = ("spec", "timed", "deterministic", "identity", "host")
"""What a manifest takes from a device's ``Hello``."""
ORDER: Final = "argument_order"
GIT_LIMIT_S: Final = 5.0


def protocol_of(study: Study) -> dict[str, Any]:
    """How measurements are sampled: what enters the keys of timed points."""
    return {**asdict(policy_of(study)), "long_launch_s": LONG_LAUNCH_S}


def policy_of(study: Study) -> Policy:
    """The sampling policy of a study; every round gets the same share of a point's budget."""
    measure = study.measure
    share_s = measure.budget_s / measure.rounds
    return Policy(measure.target, measure.samples, share_s, measure.warmup)


def check_same_run(path: Path, old: Mapping[str, Any], study: Study, device: str) -> None:
    """Refuse to mix studies or devices in one folder. Raises ``FolderRefused``."""
    old_study, old_device = old["study"]["name"], old["device"]["facts"]["name"]
    for what, before, now in (("study", old_study, study.name), ("device", old_device, device)):
        if before != now:
            raise FolderRefused(
                f"{path} holds a run of {what} {before!r}, not {now!r};"
                " give another folder with --out, or put the old run aside with --fresh"
            )


def make_manifest(
    study: Study,
    hello: Hello,
    points: Sequence[tuple[Point, str]],
    command: Sequence[str],
    old: Mapping[str, Any] | None,
    sources: Mapping[str, str],
) -> dict[str, Any]:
    """The manifest of a run that starts now, or resumes ``old``.

    ``points`` are pairs of point and key; ``sources`` the study's own files by name. The seed of
    the visiting orders and the time of the first start are kept from ``old``; every start adds a
    line to ``history``.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    described, order = environment(), argument_order(study, old)
    start = {
        "started": now,
        "command": list(command),
        "source_sha256": described["source_sha256"],
        "git": described["git"],
    }
    return {
        "created": old["created"] if old else now,
        "command": list(command),
        "study": {**study.as_json(), "text": study.text},
        "device": device_json(hello),
        "protocol": {**protocol_of(study), "rounds": study.measure.rounds},
        "environment": described,
        "seed": old["seed"] if old else secrets.randbits(32),
        "history": [*(old["history"] if old else ()), start],
        **({ORDER: order} if order else {}),
        **({"sources": dict(sources)} if sources else {}),
        "points": [{"key": key, **point.as_json()} for point, key in points],
    }


def argument_order(study: Study, old: Mapping[str, Any] | None) -> list[str]:
    """The arguments of an own kernel, for keys. None where ``old``, a run from before their order
    was part of keys, has the same order: its keys hold."""
    now, before = (
        [*(kernel or {}).get("arguments", ())]
        for kernel in (study.kernel, old["study"].get("kernel") if old else None)
    )
    return [] if old and ORDER not in old and before == now else now


def device_json(hello: Hello) -> dict[str, Any]:
    """A device as a manifest describes it."""
    own = {name: getattr(hello, name) for name in DESCRIBING}
    return {**own, "kind": hello.kind, "facts": hello.facts.as_dict()}


def hello_of(device: Mapping[str, Any]) -> Hello:
    """The device of a manifest, which no process has open."""
    own = {name: device[name] for name in DESCRIBING}
    return Hello(**own, facts=DeviceFacts.from_dict(device["facts"]), no_telemetry="", pid=0)


@cache
def versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Versions of the installed packages among ``names``."""
    found = {name: installed(name) for name in names}
    return {name: version for name, version in found.items() if version}  # some are optional


@cache
def source_hash() -> str:
    """Hash of all of nqbench's sources, kernels included."""
    files = (file for file in PACKAGE.rglob("*") if file.suffix in SOURCE_SUFFIXES)
    return digest(sorted(files))[:16]


def environment() -> dict[str, Any]:
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
        "packages": {**required(), **versions()},
        "source_sha256": source_hash(),
        "git": _git(),
    }


def _git() -> Mapping[str, Any] | None:
    """Commit of nqbench's own checkout, and whether it has local changes; ``None`` outside one."""
    if not (PACKAGE.parent / ".git").exists():
        return None
    status = ("status", "--porcelain=v2", "--branch", "--untracked-files=no")
    command = ["git", "-C", str(PACKAGE.parent), *status]
    try:
        lines = subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=GIT_LIMIT_S
        ).splitlines()
    except (OSError, subprocess.SubprocessError):
        return None  # no git here: the source hash still says what was run
    commit = lines[0].removeprefix("# branch.oid ")
    return {"commit": commit, "changed": any(not line.startswith("#") for line in lines)}
