"""Asks drivers and compiled packages, which may hang or crash, in separate processes.

``ask`` asks all questions at once, within a time limit. ``python -m nqbench.doctor.probe NAME``
answers one with JSON on standard output. Nothing is caught there: a crash, a hang or the last line
of a traceback becomes the answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from typing import Any, Final

from nqbench.devices.cuda.driver import LIBRARY
from nqbench.errors import DeviceUnavailable
from nqbench.system.versions import installed, needs

UNKNOWN: Final = "of unknown version"
"""A package that can be imported and has no metadata: copied, not installed."""
LIMIT_S: Final = 60.0
"""A driver that takes longer hangs: starting many GPUs takes about 3 s."""
_OWN_ERROR: Final = re.compile(r"nqbench\.errors\.\w+: ")
_ABSENT: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came back: ``value`` (JSON), or a ``failure`` in words, one of them empty."""

    value: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""

    @property
    def ok(self) -> bool:
        """Whether the question was answered."""
        return not self.failure


ProbeResults = Mapping[str, ProbeResult]


def ask_all(limit_s: float = LIMIT_S) -> ProbeResults:
    """Ask everything."""
    words = [sys.executable, "-m", "nqbench.doctor.probe"]
    return ask({name: [*words, name] for name in QUESTIONS}, limit_s)


def ask(commands: Mapping[str, Sequence[str]], limit_s: float = LIMIT_S) -> dict[str, ProbeResult]:
    """Run all commands together; each name with its answer, for which it has ``limit_s``."""
    with ThreadPoolExecutor(len(commands)) as pool:
        found = pool.map(_answer, commands.values(), repeat(limit_s))
        return dict(zip(commands, found, strict=True))


def _answer(words: Sequence[str], limit_s: float) -> ProbeResult:
    # PYTHONWARNINGS=error in the environment must not turn a package's warning into a failure.
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    told: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
    told |= {"env": quiet, "stdin": subprocess.DEVNULL, "timeout": limit_s}
    try:
        done = subprocess.run(words, check=False, **told)
    except subprocess.TimeoutExpired:
        return ProbeResult(failure=f"no answer within {limit_s:g} s")
    if done.returncode < 0:
        return ProbeResult(failure=f"killed by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        return ProbeResult(failure=_reason(done.stderr) or f"exit code {done.returncode}")
    try:
        # A package may print while it is imported; the answer is the last thing written.
        value = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        return ProbeResult(failure=f"an answer that cannot be read: {done.stdout.strip()[-80:]!r}")
    return ProbeResult(value=value)


def _reason(text: str) -> str:
    """What a traceback says: its last line, in which an error of nqbench's needs no name."""
    last = text.strip().rpartition("\n")[2].strip()
    absent = _ABSENT.match(last)
    return f"{absent[1]} is not installed" if absent else _OWN_ERROR.sub("", last, count=1)


def packages() -> dict[str, Any]:
    """Requirements of nqbench itself that this environment does not meet.

    Raises ``DeviceUnavailable`` where nqbench runs without being installed, as from its sources.
    """
    unmet = []
    try:
        own = needs("nqbench")
    except PackageNotFoundError as error:
        said = "nqbench is not installed here, so that what it needs is not known"
        raise DeviceUnavailable(said) from error
    for requirement in own:
        found = installed(requirement.name)
        if found is None:
            unmet.append(str(requirement))
        elif not requirement.specifier.contains(found, prereleases=True):
            unmet.append(f"{requirement} (installed: {found})")
    return {"unmet": unmet, "count": len(own)}


def driver() -> dict[str, Any]:
    """The driver's library: error of ``cuInit``, newest CUDA version, number of GPUs."""
    library = ctypes.CDLL(LIBRARY)
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    error = library.cuInit(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    if error == 0:
        error = library.cuDeviceGetCount(ctypes.byref(count))
    cuda = [version.value // 1000, version.value % 1000 // 10]
    return {"error": error, "cuda": cuda, "count": count.value}


def compiler() -> dict[str, Any]:
    """NVRTC: its version, the architectures it knows, and the bindings that call it."""
    from nqbench.compiler import nvrtc

    return {
        "version": nvrtc.compiler_version(),
        "archs": list(nvrtc.supported_archs()),
        "bindings": installed("cuda-bindings") or UNKNOWN,
    }


def linker() -> dict[str, Any]:
    """nvJitLink and the device runtime, which a kernel that launches kernels is linked with."""
    from nqbench.compiler import bindings

    return {"version": bindings.linker_version(), "runtime": str(bindings.device_runtime())}


def pycuda() -> dict[str, Any]:
    """PyCUDA: version, CUDA headers it was built with. Makes no context."""
    import pycuda.driver as cuda

    cuda.init()
    headers = ".".join(str(part) for part in cuda.get_version()[:2])
    return {"version": installed("pycuda") or UNKNOWN, "headers": headers}


def nvml() -> dict[str, Any]:
    """NVML: the driver's version and one entry for each GPU.

    What it does not report (unsupported, or not permitted) is ``None``. Raises ``ImportError``
    without its package and ``pynvml.NVMLError`` if it does not start.
    """
    package = import_module("pynvml")

    def ask(question: str, *arguments: Any) -> Any:
        try:
            value = getattr(package, f"nvml{question}")(*arguments)
        except package.NVMLError:
            return None
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    package.nvmlInit()
    try:
        gpus = [_gpu(package, ask, index) for index in range(package.nvmlDeviceGetCount())]
        return {"driver": ask("SystemGetDriverVersion"), "gpus": gpus}
    finally:
        package.nvmlShutdown()


def _gpu(package: Any, ask: Callable[..., Any], index: int) -> dict[str, Any]:
    """One GPU: identity, modes, clocks (MHz), memory (bytes), processes."""
    gpu = package.nvmlDeviceGetHandleByIndex(index)
    sm = package.NVML_CLOCK_SM

    def mode(name: str) -> bool | None:
        value = ask(f"DeviceGet{name}Mode", gpu)  # MIG and ECC: current, pending
        return value if value is None else bool(value[0] if isinstance(value, list) else value)

    memory = ask("DeviceGetMemoryInfo", gpu)
    capability = ask("DeviceGetCudaComputeCapability", gpu)
    event = hasattr(package, "nvmlDeviceGetCurrentClocksEventReasons")  # from driver 535 on
    reasons = ask(f"DeviceGetCurrentClocks{'Event' if event else 'Throttle'}Reasons", gpu)
    running = [ask(f"DeviceGet{kind}RunningProcesses", gpu) for kind in ("Compute", "Graphics")]
    pids = dict.fromkeys(process.pid for found in running for process in found or ())
    processes = [{"pid": pid, "name": ask("SystemGetProcessName", pid)} for pid in pids]
    return {
        "index": index,
        "name": ask("DeviceGetName", gpu),
        "uuid": ask("DeviceGetUUID", gpu),
        "capability": None if capability is None else list(capability),
        "memory_bytes": memory and memory.total,
        **{name.lower(): mode(name) for name in ("Persistence", "Mig", "Ecc")},
        "prohibited": ask("DeviceGetComputeMode", gpu) == 2,  # NVML_COMPUTEMODE_PROHIBITED
        "sm_mhz": ask("DeviceGetClockInfo", gpu, sm),
        "max_sm_mhz": ask("DeviceGetMaxClockInfo", gpu, sm),
        "application_sm_mhz": ask("DeviceGetApplicationsClock", gpu, sm),
        "default_sm_mhz": ask("DeviceGetDefaultApplicationsClock", gpu, sm),
        "clocks_set": bool((reasons or 0) & 0x2),  # ...ReasonApplicationsClocksSetting
        "processes": None if running == [None, None] else processes,
    }


QUESTIONS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "packages": packages,
    "driver": driver,
    "compiler": compiler,
    "linker": linker,
    "pycuda": pycuda,
    "llvmlite": lambda: {"llvm": import_module("llvmlite.binding").llvm_version_info[0]},
    "numba": lambda: {"version": import_module("numba").__version__},
    "nvbench": lambda: {"version": version("cuda-bench")},
    "nvml": nvml,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(QUESTIONS[sys.argv[1]]()))
