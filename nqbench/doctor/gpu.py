"""Rows about the driver: is it there, does it start, does the compiler fit it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row
from nqbench.doctor.software import SETUP

NVIDIA_VENDOR: Final = "0x10de"
DISPLAY_CLASS: Final = "0x03"  # PCI base class of display and 3D controllers
NO_DEVICE: Final = 100
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
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
"""What ``cuInit`` answers where people have seen it, and what helps."""


def has_nvidia_card(root: Path) -> bool:
    """Whether the PCI bus has an NVIDIA graphics card, driver or not."""
    return any(
        _read(vendor) == NVIDIA_VENDOR
        and _read(vendor.with_name("class")).startswith(DISPLAY_CLASS)
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
    return Row(name, "ok", f"{what}, {number} GPU{'s' * (number > 1)}", "gpu")


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
    # Said even though nothing is wrong: cuda:0 and the row "GPU 0" may be two different chips.
    return Row(VISIBLE, "ok", f"{value}: cuda:0 is the first of these; rows below count all", "gpu")


def compiler_fits(compiler: Answer, driver: Answer, nvml: Answer) -> Row | None:
    """Whether what NVRTC makes can be loaded by this driver and these GPUs; ``None``: unknown."""
    if not (compiler.ok and driver.ok) or driver.value["error"]:
        return None
    name = "compiler fits the GPU"
    made, served = compiler.value["version"], driver.value["cuda"]
    if int(made.partition(".")[0]) > served[0]:
        found = f"NVRTC {made} makes code that a driver for CUDA {dotted(served)} does not load"
        return Row(name, "missing", found, "gpu", f"{SETUP}   (takes the CUDA 12 compiler)")
    archs = compiler.value["archs"]
    for gpu in nvml.value.get("gpus", ()) if nvml.ok else ():
        if gpu["capability"] and (arch := sm(gpu)) not in archs:
            found = f"NVRTC {made} does not compile for {arch} (GPU {gpu['index']})"
            return Row(name, "missing", found, "gpu", SETUP)
    return Row(name, "ok", f"NVRTC {made}, driver for CUDA {dotted(served)}", "gpu")


def sm(gpu: Mapping[str, Any]) -> str:
    """Architecture of a GPU as the compiler writes it."""
    return f"sm_{''.join(str(part) for part in gpu['capability'])}"


def dotted(version: Any) -> str:
    """``[13, 0]`` as ``13.0``."""
    return ".".join(str(part) for part in version)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
