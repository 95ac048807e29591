"""The facts that checks.yaml names: what was seen, and the conditions that choose among its cases.

Conditions that are not there count as false.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nqbench.doctor.probe import ProbeResults
from nqbench.system.files import others_write, text
from nqbench.system.suggest import many
from nqbench.system.versions import PACKAGE

SeenFacts = dict[str, Any]

DISPENSABLE: Final = ("tbb", "nvidia-")
"""How requirements begin without which nqbench works: one scheme of one workload needs TBB, and
NVIDIA's libraries may come from a CUDA toolkit, which the rows of the compiler find out."""
NO_DEVICE: Final = 100
NCU_PLACES: Final = ("usr/local/cuda*/bin/ncu", "opt/nvidia/nsight-compute/*/ncu")
MIN_FREE_BYTES: Final = 1 << 30
"""A long study writes tens of megabytes; below 1 GiB, other programs may fill the disk first."""


def of_software(
    answers: ProbeResults, version: tuple[int, ...] = sys.version_info[:3]
) -> SeenFacts:
    """Python and its packages, and the commands that install them.

    ``make setup`` also builds PyCUDA where there is a GPU, and takes the compiler that the driver
    needs; for pip, an extra names these requirements.
    """
    pip = f"{sys.executable} -m pip install"
    made = "make setup" if (PACKAGE.parent / "Makefile").is_file() else ""
    unmet = answers["packages"].value.get("unmet", ())
    archs = answers["compiler"].value.get("archs")
    return {
        **answers,
        **{f"{name}_ok": answer.ok for name, answer in answers.items()},
        "python": f"{'.'.join(map(str, version))} in {Path(sys.prefix)}",
        "python_old": version < (3, 11),
        "unmet": ", ".join(unmet),
        "unmet_needed": any(not requirement.startswith(DISPENSABLE) for requirement in unmet),
        "archs": f"{archs[0]} to {archs[-1]}" if archs else "no architecture",
        "pip": pip,
        "setup": made or f"{pip} 'nqbench'",
        "setup_cuda": made or f"{pip} 'nqbench[cuda]'",
        "setup_cuda12": made or f"{pip} 'nqbench[cuda12]'",
    }


def of_driver(answers: ProbeResults, root: Path, environment: Mapping[str, str]) -> SeenFacts:
    """The driver, and what NVRTC, NVML and ncu make of it."""
    driver, nvml = answers["driver"], answers["nvml"]
    facts: SeenFacts = {
        "library_fails": not driver.ok and "libcuda" not in driver.failure,
        "kernel_module": (root / "proc/driver/nvidia/version").exists(),
        "card": any(  # of NVIDIA's, and a display or 3D controller (PCI base class 3)
            text(vendor).strip() == "0x10de" and text(vendor.with_name("class")).startswith("0x03")
            for vendor in root.glob("sys/bus/pci/devices/*/vendor")
        ),
        "no_pynvml": nvml.failure.startswith("pynvml is not installed"),
        "nvml_gpus": many(len(nvml.value.get("gpus", ())), "GPU"),
    }
    if driver.ok:
        value = driver.value
        error = value["error"] or (0 if value["count"] else NO_DEVICE)
        version = f"{nvml.value['driver']}, " if nvml.ok and nvml.value.get("driver") else ""
        facts |= {
            "served": dotted(value["cuda"]),
            "driver_about": f"{version}serves CUDA up to {dotted(value['cuda'])}",
            "driver_gpus": many(value["count"], "GPU"),
            "driver_starts": not error,
            "no_error": not value["error"],
            "error": error,
            f"error_{error}": True,
            "visible": environment.get("CUDA_VISIBLE_DEVICES"),
            "hidden": environment.get("CUDA_VISIBLE_DEVICES") == "",
        }
        compiler, archs = answers["compiler"], answers["compiler"].value.get("archs", ())
        if compiler.ok and not value["error"]:
            chips = [g for g in nvml.value.get("gpus", ()) if g["capability"]]
            strange = [f"{arch_of(g)} (GPU {g['index']})" for g in chips if arch_of(g) not in archs]
            nvrtc = compiler.value["version"]
            facts |= {"fits": True, "nvrtc": nvrtc, "unknown_chip": ", ".join(strange)}
            facts["driver_older"] = int(nvrtc.partition(".")[0]) > value["cuda"][0]
    return facts


def of_gpu(gpu: Mapping[str, Any]) -> SeenFacts:
    """One GPU as ``probe.nvml`` reports it; what is ``None`` there was not reported."""
    capability, now, most = gpu["capability"], gpu["sm_mhz"], gpu["max_sm_mhz"]
    default, chosen, running = gpu["default_sm_mhz"], gpu["application_sm_mhz"], gpu["processes"]
    about = [
        gpu["name"] or "GPU without a name",
        f"{dotted(capability)} ({arch_of(gpu)})" if capability else "",
        f"{gpu['memory_bytes'] / 2**30:.0f} GiB" if gpu["memory_bytes"] else "",
        gpu["uuid"] or "",
    ]
    shown = [f"{p['pid']} {p['name'] or ''}".strip() for p in running or ()]
    unreported = ("persistence", "mig", "ecc", "processes")
    return {
        **gpu,
        **{f"{name}_unknown": gpu[name] is None for name in unreported},
        "about": ", ".join(filter(None, about)),
        "clock_now": f", SM clock {now} of at most {most} MHz now" if now and most else "",
        "clock_chosen": chosen is not None and default not in (None, chosen),
        "lock": default or most,
        "running": f"{len(shown)}: {', '.join(shown)}",
    }


def of_system(
    root: Path, load_1min: float, cache: Path, results: Path, path: str | None
) -> SeenFacts:
    """CPU, other load, folders, and where ncu is, given a search path as in ``$PATH``."""
    elsewhere = sorted(file.parent for place in NCU_PLACES for file in root.glob(place))
    cores, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    files = root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    governors = sorted({name for file in files if (name := text(file).strip())})
    facts: SeenFacts = {
        "load": f"{usable} of {cores} usable, load {load_1min:.1f}",
        "busy": load_1min > cores / 2,  # beyond, the launching thread may wait for a core
        "governor": ", ".join(governors),
        "governor_best": governors == ["performance"],
        "cache": cache,
        "cache_foreign": others_write(cache.parent),
        "cache_works": writable(cache),
        "results": results,
        "results_blocked": not writable(results),
        "ncu": shutil.which("ncu", path=path or ""),
        "ncu_elsewhere": elsewhere[-1] if elsewhere else "",
    }
    if not facts["results_blocked"]:
        free = shutil.disk_usage(_existing(results)).free
        facts |= {"free": f"{free / 2**30:.1f} GiB", "disk_full": free < MIN_FREE_BYTES}
    return facts


def arch_of(gpu: Mapping[str, Any]) -> str:
    """Architecture of a GPU as the compiler writes it."""
    return f"sm_{''.join(str(part) for part in gpu['capability'])}"


def dotted(version: list[int]) -> str:
    """``[13, 0]`` as ``13.0``."""
    return ".".join(str(part) for part in version)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def writable(folder: Path) -> bool:
    """Whether a file can be made in the folder, or the folder itself where it does not exist yet.

    Tried with a file that vanishes at once: permission bits say nothing about mounts and quotas.
    """
    try:
        with tempfile.TemporaryFile(dir=_existing(folder.absolute())):
            return True
    except OSError:
        return False
