"""Devices by name, for ``--device`` and ``nqbench devices``.

A spec is ``auto``, ``cuda`` or ``cuda:N``, ``sim``, ``sim:MODEL`` or
``sim:MODEL:ORDER:MODE``, ``cpu`` or ``fake:...`` (a
test device). Nothing heavy is imported before a device of that kind is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nqbench.device import Device
from nqbench.errors import DeviceError, DeviceUnavailable
from nqbench.facts import DeviceFacts
from nqbench.plan import Plan
from nqbench.simulator import models
from nqbench.system.suggest import nearest, suggestion

if TYPE_CHECKING:
    from nqbench.simulator.launching import SimPlan

KINDS: Final = ("auto", "cuda", "sim", "cpu", "fake")


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """The device that a spec resolves to, the reason, and a remark about its results, in words."""

    spec: str
    why: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One line of ``nqbench devices``.

    ``available`` is false for a missing device; ``note`` then says why and how to fix it.
    """

    spec: str
    kind: str
    name: str
    available: bool
    note: str


def choose_device(spec: str = "auto") -> DeviceChoice:
    """Resolve ``auto``: the first CUDA GPU that works, otherwise the simulator's default model.

    Any other spec is returned in its full form (``cuda`` becomes ``cuda:0``). Raises
    ``DeviceUnavailable`` for a spec that names no kind of device.
    """
    kind, rest = _split(spec)
    if kind == "sim":
        model, order, modes = _model_and_modes(rest)
        words = () if order == models.ROUND_ROBIN else (order,)
        full = ":".join(("sim", model, *words, *modes))
        return DeviceChoice(full, "asked for", models.load_model(model).remark)
    if kind != "auto":
        if kind == "cuda":
            if rest and not rest.isdecimal():
                raise DeviceUnavailable(f"device {spec!r}: GPUs are numbered, e.g. cuda:0")
            rest = str(int(rest or 0))
        return DeviceChoice(f"{kind}:{rest}" if rest else kind, "asked for")
    from nqbench.devices.cuda.query import find_gpus

    try:
        first, gpu = next(iter(find_gpus().items()))
    except DeviceUnavailable as absence:
        cause = str(absence).partition(";")[0]  # behind it: advice to name another device
        return DeviceChoice(f"sim:{models.DEFAULT_MODEL}", f"no CUDA GPU can be used: {cause}")
    return DeviceChoice(first, f"the first CUDA GPU: {gpu.name}")


def open_device(spec: str) -> Device:
    """Open a device; ``auto`` is resolved by :func:`choose_device`.

    Raises ``DeviceUnavailable`` in one sentence if it cannot be used.
    """
    spec = choose_device(spec).spec
    kind, _, rest = spec.partition(":")
    if kind == "cuda":
        from nqbench.devices.cuda.device import CudaDevice

        return CudaDevice(int(rest))
    if kind == "sim":
        return open_simulator(spec)
    if kind == "cpu":
        from nqbench.devices.cpu import CpuDevice

        return CpuDevice()
    from nqbench.devices.fake import FakeDevice, FakeModel

    return FakeDevice(FakeModel.parse(rest), spec=spec)


class SimDevice(Device):
    """A simulated GPU; arguments and errors are those of ``nqbench.simulator.simulation``."""

    timed = False
    deterministic = True

    def __init__(self, model: str = "mini", **settings: Any) -> None:
        from nqbench.simulator.simulation import simulation

        self.simulation = simulation(model, **settings)
        self.model, self.spec = self.simulation.model, self.simulation.spec
        self.facts, self.remark = self.model.facts, self.model.remark

    def identity(self) -> Mapping[str, object]:
        """Everything that can change a counter."""
        return self.simulation.identity()

    def prepare(self, plan: Plan) -> SimPlan:
        """See ``simulator.launching.prepare``; ``DeviceError`` for a plan for the CPU."""
        if plan.on_cpu:
            said = f"{self.spec} runs kernels; {plan.name} is a computation for the cpu device"
            raise DeviceError(said)
        from nqbench.simulator.launching import prepare

        return prepare(self.simulation, plan)


def open_simulator(spec: str, *, checked: bool = False) -> SimDevice:
    """Open a simulated GPU, in its checked mode if asked. Raises ``DeviceUnavailable``."""
    kind, rest = _split(choose_device(spec).spec)
    if kind != "sim":
        said = f"device {spec!r} is no simulator; use --device sim:MODEL, for example sim:mini"
        raise DeviceUnavailable(said)
    model, order, modes = _model_and_modes(rest)
    return SimDevice(model, order=order, modes=modes, checked=checked)


def facts_for(spec: str) -> DeviceFacts:
    """Facts of a device, without running anything.

    A GPU gets no context; other kinds use no hardware.
    """
    kind, rest = _split(choose_device(spec).spec)
    if kind == "sim":
        return models.load_model(_model_and_modes(rest)[0]).facts
    with closing(open_device(spec)) as device:
        return device.facts


def list_devices() -> list[DeviceRow]:
    """Every device of this machine: GPUs, simulator models, the CPU, and why there are no GPUs."""
    from nqbench.compiler.nvrtc import compiler_version
    from nqbench.devices.cuda.query import find_gpus

    rows, missing = list[DeviceRow](), ""
    try:
        compiler_version()
    except DeviceError as error:
        missing = str(error)
    try:
        for spec, gpu in find_gpus().items():
            size = f"{gpu.arch}, {gpu.memory_bytes / 2**30:.0f} GiB"
            note = f"{gpu.multiprocessors} multiprocessors, {size}"
            rows.append(DeviceRow(spec, "cuda", gpu.name, True, note))
    except DeviceUnavailable as absence:
        rows.append(DeviceRow("cuda:0", "cuda", "-", False, str(absence)))
    for name in models.model_names():
        model = models.load_model(name)
        also = [f" (also sim:{a})" for a, one in models.REPRESENTATIVES.items() if one == name]
        arch = model.remark or "".join((model.facts.arch, *also[:1]))
        note = missing or f"{model.facts.multiprocessors} multiprocessors, {arch}"
        rows.append(DeviceRow(f"sim:{name}", "sim", model.facts.name, not missing, note))
    rows.append(DeviceRow("cpu", "cpu", "this machine's CPU", True, "baselines only"))
    return rows


def _split(spec: str) -> tuple[str, str]:
    kind, _, rest = spec.strip().partition(":")
    if kind == "replay":
        raise DeviceUnavailable(
            f"device {spec!r}: recorded runs are no longer a device; `nqbench report RUN`,"
            " `claims RUN` and `compare RUN RUN` read them without one"
        )
    if kind not in KINDS:
        close = nearest(kind, KINDS)
        hint = f" (did you mean {close!r}?)" if close else ""
        raise DeviceUnavailable(
            f"no device is called {spec!r}{hint}; devices are auto, cuda:0, sim:mini"
            " and cpu, and 'nqbench devices' lists those of this machine"
        )
    if kind in ("auto", "cpu") and rest:
        raise DeviceUnavailable(f"device {spec!r}: nothing can follow {kind!r}; write {kind!r}")
    return kind, rest


def _model_and_modes(rest: str) -> tuple[str, str, tuple[str, ...]]:
    """``mini:reverse:cache`` as its parts: model, order of warps, modes."""
    model, *words = rest.split(":")
    if not models.is_model(model):  # the path of a file may have colons
        model, words = rest, []
        while model.rpartition(":")[2] in (*models.ORDERS, *models.MODES):
            model, _, word = model.rpartition(":")
            words.append(word)
    for word in words:
        if word not in (*models.ORDERS, *models.MODES):
            raise DeviceUnavailable(
                f"{word!r} is neither an order of warps ({', '.join(models.ORDERS)}) nor a mode"
                f" ({', '.join(models.MODES)}) of the simulator;"
                f" {suggestion(word, (*models.ORDERS, *models.MODES))}"
            )
    orders = [word for word in words if word in models.ORDERS]
    if len(set(orders)) > 1:
        raise DeviceUnavailable(f"device 'sim:{rest}' has two orders of warps; name one")
    modes = tuple(mode for mode in models.MODES if mode in words)
    return model or models.DEFAULT_MODEL, orders[0] if orders else models.ROUND_ROBIN, modes
