"""Rows about each GPU as it is now: modes, clocks, other users. From NVML's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nqbench.doctor.gpu import dotted, sm
from nqbench.doctor.probe import Answer
from nqbench.doctor.report import Row
from nqbench.doctor.software import pip_install

Gpu = Mapping[str, Any]


def telemetry(answer: Answer, driver: Answer) -> Row:
    """NVML and its package."""
    if answer.ok:
        number = len(answer.value["gpus"])
        return Row("NVML", "ok", f"tells about {number} GPU{'s' * (number != 1)}", "telemetry")
    if answer.failure.startswith("pynvml is not installed"):
        remedy = pip_install("nvidia-ml-py")
    else:
        remedy = "nvidia-smi" if driver.ok else "the driver first, which brings NVML's library"
    return Row("NVML", "missing", answer.failure, "telemetry", remedy)


def gpus(answer: Answer) -> Iterator[Row]:
    """All rows of all GPUs."""
    for gpu in answer.value.get("gpus", ()) if answer.ok else ():
        yield identity(gpu)
        yield from (clocks(gpu), persistence(gpu), mig(gpu), ecc(gpu), others(gpu))


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
    """Whether a setting holds the clocks.

    NVML has no question for locked clocks. Signs of it: the driver gives a setting as the reason
    for the present clocks, or the application clock is not the default one.
    """
    name = f"{_name(gpu)} clocks"
    now, most, set_to = gpu["sm_mhz"], gpu["max_sm_mhz"], gpu["application_sm_mhz"]
    text = "" if now is None or most is None else f"SM clock {now} of at most {most} MHz now"
    if gpu["clocks_set"]:
        return Row(name, "ok", _joined("held by a setting", text), "steadiness")
    if set_to is not None and gpu["default_sm_mhz"] not in (None, set_to):
        return Row(name, "ok", _joined(f"application clock {set_to} MHz", text), "steadiness")
    hold = gpu["default_sm_mhz"] or most
    remedy = f"sudo nvidia-smi -i {gpu['index']} --lock-gpu-clocks={hold},{hold}" if hold else ""
    found = _joined("no sign that they are locked", text)
    return Row(name, "warning", found, "steadiness", remedy)


def persistence(gpu: Gpu) -> Row:
    """Whether the driver stays loaded while nobody uses the GPU."""
    name = f"{_name(gpu)} persistence"
    if gpu["persistence"] is None:
        return Row(name, "warning", "not told", "steadiness")
    if gpu["persistence"]:
        return Row(name, "ok", "on", "steadiness")
    remedy = f"sudo nvidia-smi -i {gpu['index']} --persistence-mode=1"
    return Row(name, "warning", "off: every process starts the GPU anew", "steadiness", remedy)


def mig(gpu: Gpu) -> Row:
    """Whether the GPU is divided."""
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
        return Row(name, "warning", "not told", "steadiness", "nvidia-smi")
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
