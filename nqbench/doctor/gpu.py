"""Rows about the GPUs: the driver, each GPU as it is now, and ncu, NVIDIA's kernel profiler."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nqbench.devices.cuda.driver import VISIBLE
from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row
from nqbench.doctor.software import pip_install, setup
from nqbench.doctor.system import read
from nqbench.system.suggest import many

Gpu = Mapping[str, Any]
"""One GPU as ``nvml.describe`` reports it."""

NVIDIA_VENDOR: Final = "0x10de"
DISPLAY_CLASS: Final = "0x03"  # PCI base class of display and 3D controllers
NO_DEVICE: Final = 100
START_FAILURES: Final[Mapping[int, tuple[str, str]]] = {
    100: (
        "sees no GPU",
        "check CUDA_VISIBLE_DEVICES; in a container, start it with: docker run --gpus all",
    ),
    802: (
        "is not ready: its fabric manager does not run",
        "sudo systemctl start nvidia-fabricmanager",
    ),
    803: ("and its kernel module have different versions", "sudo reboot"),
    804: (
        "is a compatibility package that this GPU does not take",
        "remove the cuda-compat folder from LD_LIBRARY_PATH",
    ),
}
"""Errors of ``cuInit`` that occur in practice: what they mean, and what helps."""
USUAL_PLACES: Final = ("usr/local/cuda*/bin/ncu", "opt/nvidia/nsight-compute/*/ncu")
PARAMETERS: Final = "proc/driver/nvidia/params"
ADMIN_ONLY: Final = re.compile(r"^RmProfilingAdminOnly:\s*(\d)", re.MULTILINE)
CAPABILITIES: Final = re.compile(r"^CapEff:\s*([0-9a-fA-F]+)", re.MULTILINE)
SUFFICIENT: Final = {"CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38}
"""Linux capabilities, either of which lets a process read the counters, with their bit numbers."""
PERMIT: Final = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'"
    " | sudo tee /etc/modprobe.d/nvidia-profiling.conf   (then reboot)"
)


def has_nvidia_card(root: Path) -> bool:
    """Whether the PCI bus has an NVIDIA graphics card, driver or not."""
    return any(
        read(vendor) == NVIDIA_VENDOR and read(vendor.with_name("class")).startswith(DISPLAY_CLASS)
        for vendor in root.glob("sys/bus/pci/devices/*/vendor")
    )


def has_kernel_module(root: Path) -> bool:
    """Whether NVIDIA's kernel module is loaded."""
    return (root / "proc/driver/nvidia/version").exists()


def driver(answer: Answer, nvml: Answer, root: Path) -> Row:
    """The driver: version, newest CUDA it serves, whether it starts."""
    name = "NVIDIA driver"
    if not answer.ok:
        return _absent(name, answer.failure, root)
    value = answer.value
    version = f"{nvml.value['driver']}, " if nvml.ok and nvml.value.get("driver") else ""
    what = f"{version}serves CUDA up to {dotted(value['cuda'])}"
    if value["error"] or not value["count"]:
        code = value["error"] or NO_DEVICE
        words, remedy = START_FAILURES.get(code, ("does not start", "nvidia-smi"))
        return Row(name, "missing", f"{what}, {words} (CUDA error {code})", "gpu", remedy)
    number = value["count"]
    return Row(name, "ok", f"{what}, {many(number, 'GPU')}", "gpu")


def _absent(name: str, failure: str, root: Path) -> Row:
    if "libcuda" not in failure:
        return Row(name, "missing", failure, "gpu", "nvidia-smi")
    if has_kernel_module(root):
        found = "loaded, but its library libcuda.so.1 is not visible here"
        remedy = "in a container, start it with: docker run --gpus all"
        return Row(name, "missing", found, "gpu", remedy)
    if has_nvidia_card(root):
        found = "not installed, though an NVIDIA card is in this machine"
        remedy = "sudo ubuntu-drivers install   (or your system's way to install NVIDIA's driver)"
        return Row(name, "missing", found, "gpu", remedy)
    found = "not installed, and no NVIDIA card is seen"
    return Row(name, "missing", found, "gpu", "use --device sim, or a machine with a GPU")


def visible(value: str) -> Row:
    """What ``CUDA_VISIBLE_DEVICES`` does to the numbers of the GPUs."""
    if not value:
        found = "is empty, which hides every GPU"
        return Row(VISIBLE, "warning", found, "gpu", f"unset {VISIBLE}")
    # Shown even though nothing is wrong: cuda:0 and the row "GPU 0" may be two different chips.
    return Row(VISIBLE, "ok", f"{value}: cuda:0 is the first of these; rows below count all", "gpu")


def compiler_fits(compiler: Answer, driver: Answer, nvml: Answer) -> Row | None:
    """Whether this driver and these GPUs can load what NVRTC makes; ``None``: unknown."""
    if not (compiler.ok and driver.ok) or driver.value["error"]:
        return None
    name = "compiler fits the GPU"
    made, served = compiler.value["version"], driver.value["cuda"]
    if int(made.partition(".")[0]) > served[0]:
        found = f"NVRTC {made} makes code that a driver for CUDA {dotted(served)} does not load"
        remedy = f"{setup('cuda12')}   (takes the CUDA 12 compiler)"
        return Row(name, "missing", found, "gpu", remedy)
    archs = compiler.value["archs"]
    for gpu in nvml.value.get("gpus", ()) if nvml.ok else ():
        if gpu["capability"] and (arch := sm(gpu)) not in archs:
            found = f"NVRTC {made} does not compile for {arch} (GPU {gpu['index']})"
            return Row(name, "missing", found, "gpu", setup())
    return Row(name, "ok", f"NVRTC {made}, driver for CUDA {dotted(served)}", "gpu")


def sm(gpu: Gpu) -> str:
    """Architecture of a GPU as the compiler writes it."""
    return f"sm_{''.join(str(part) for part in gpu['capability'])}"


def dotted(version: Any) -> str:
    """``[13, 0]`` as ``13.0``."""
    return ".".join(str(part) for part in version)


def telemetry(answer: Answer, driver: Answer) -> Row:
    """NVML and its package."""
    if answer.ok:
        found = f"reports {many(len(answer.value['gpus']), 'GPU')}"
        return Row("NVML", "ok", found, "telemetry")
    if answer.failure.startswith("pynvml is not installed"):
        remedy = pip_install("nvidia-ml-py")
    else:
        remedy = "nvidia-smi" if driver.ok else "the driver first, which brings NVML's library"
    return Row("NVML", "missing", answer.failure, "telemetry", remedy)


def gpus(answer: Answer) -> Iterator[Row]:
    """All rows of all GPUs."""
    for gpu in answer.value.get("gpus", ()) if answer.ok else ():
        for check in (identity, clocks, persistence, mig, ecc, others):
            yield check(gpu)


def identity(gpu: Gpu) -> Row:
    """Name, UUID, compute capability, memory; whether its mode lets anyone compute."""
    capability = gpu["capability"]
    parts = [
        gpu["name"] or "GPU without a name",
        f"{dotted(capability)} ({sm(gpu)})" if capability else "",
        f"{gpu['memory_bytes'] / 2**30:.0f} GiB" if gpu["memory_bytes"] else "",
        gpu["uuid"] or "",
    ]
    found = ", ".join(part for part in parts if part)
    index = gpu["index"]
    if gpu["compute_mode"] == "prohibited":
        remedy = f"sudo nvidia-smi -i {index} --compute-mode=0"
        return Row(_name(gpu), "missing", f"{found}: computing is prohibited", "gpu", remedy)
    return Row(_name(gpu), "ok", found, "gpu")


def clocks(gpu: Gpu) -> Row:
    """Whether a setting fixes the clocks.

    NVML cannot tell whether clocks are locked. Signs of it: the driver names a setting as the
    reason for the current clocks, or the application clock is not the default.
    """
    name = f"{_name(gpu)} clocks"
    now, most, set_to = gpu["sm_mhz"], gpu["max_sm_mhz"], gpu["application_sm_mhz"]
    text = "" if now is None or most is None else f"SM clock {now} of at most {most} MHz now"
    if gpu["clocks_set"]:
        return Row(name, "ok", _joined("fixed by a setting", text), "steadiness")
    if set_to is not None and gpu["default_sm_mhz"] not in (None, set_to):
        return Row(name, "ok", _joined(f"application clock {set_to} MHz", text), "steadiness")
    locked = gpu["default_sm_mhz"] or most
    command = f"sudo nvidia-smi -i {gpu['index']} --lock-gpu-clocks={locked},{locked}"
    found = _joined("no sign that they are locked", text)
    return Row(name, "warning", found, "steadiness", command if locked else "")


def persistence(gpu: Gpu) -> Row:
    """Whether the driver stays loaded while nobody uses the GPU."""
    name = f"{_name(gpu)} persistence"
    if gpu["persistence"] is None:
        return Row(name, "warning", "not reported", "steadiness")
    if gpu["persistence"]:
        return Row(name, "ok", "on", "steadiness")
    remedy = f"sudo nvidia-smi -i {gpu['index']} --persistence-mode=1"
    return Row(name, "warning", "off: every process starts the GPU again", "steadiness", remedy)


def mig(gpu: Gpu) -> Row:
    """Whether the GPU is partitioned."""
    name = f"{_name(gpu)} MIG"
    if gpu["mig"]:
        found = "on: an instance has part of the multiprocessors, and neighbours may disturb it"
        remedy = f"sudo nvidia-smi -i {gpu['index']} --multi-instance-gpu=0"
        return Row(name, "warning", found, "steadiness", remedy)
    return Row(name, "ok", "off" if gpu["mig"] is not None else "not on this GPU", "steadiness")


def ecc(gpu: Gpu) -> Row:
    """Error correction: recorded, since it takes memory bandwidth; neither state is wrong."""
    name = f"{_name(gpu)} ECC"
    state = {True: "on", False: "off", None: "not on this GPU"}[gpu["ecc"]]
    return Row(name, "ok", state, "steadiness")


def others(gpu: Gpu) -> Row:
    """Other processes on the GPU."""
    name = f"{_name(gpu)} other processes"
    running = gpu["processes"]
    if running is None:
        return Row(name, "warning", "not reported", "steadiness", "nvidia-smi")
    if not running:
        return Row(name, "ok", "none seen", "steadiness")
    texts = [f"{p['pid']} {p['name'] or ''}".strip() for p in running]
    found = f"{len(running)}: {', '.join(texts)}"
    remedy = "wait until they have ended, or choose another GPU with --device cuda:N"
    return Row(name, "warning", found, "steadiness", remedy)


def _name(gpu: Gpu) -> str:
    return f"GPU {gpu['index']}"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


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
    """Whether this user may read the counters, by the driver's parameters."""
    name = "counter permission"
    parameters = read(root / PARAMETERS)
    granted = _capabilities(read(root / "proc/self/status"))
    match = ADMIN_ONLY.search(parameters)
    if match is None:
        found = "the driver does not say who may read the counters"
        return Row(name, "warning", found, "counters", "try: ncu --query-metrics")
    if match[1] == "0":
        return Row(name, "ok", "everybody may read the counters", "counters")
    if granted:
        found = f"administrators only, and this process is one ({granted[0]})"
        return Row(name, "ok", found, "counters")
    found = "only administrators may read the counters (ERR_NVGPUCTRPERM)"
    return Row(name, "missing", found, "counters", PERMIT)


def _capabilities(status: str) -> list[str]:
    """Which sufficient capabilities this process has. Root in a container may have none."""
    match = CAPABILITIES.search(status)
    mask = int(match[1], 16) if match else 0
    return [name for name, bit in SUFFICIENT.items() if mask >> bit & 1]
