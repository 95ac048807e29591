"""A test device: it runs no kernel, has a known noise model, and misbehaves on request.

``fake:seed=1,noise=0.004,round=0.004,crash=8`` is a device whose times are drawn from a model, so
that statistics can be checked against the truth, and that crashes on every plan of size 8, so that
fault handling can be checked. It is given the right answers, so it says nothing about a kernel, and
none of its results belongs in a comparison.

A kernel time is the product of

- ``base`` seconds x ``growth`` ** (n - 8) x a fixed factor per plan within ``spread``
- exp(round effect), normal with deviation ``round``: what one process differs by
- ``throttle`` from the 100th launch on (for ``throttle_for`` launches, 0: for the rest), which the
  device's sensor shows
- exp(e), e normal with deviation ``noise``
- ``cold`` where launches start with a cold L2 cache
- 1 + ``ramp`` x 0.8 ** k for the k-th launch after loading: what a warm-up is for

Faults hit the plans whose size ``n`` equals the number given, from round ``from_round`` on (0 is
the verification): ``crash`` kills the process, ``hang`` never returns, ``wrong`` answers one too
many, ``stale`` does so on other contents of its buffers, ``fail`` raises a launch error, ``fatal``
one after which the process must end, ``refuse`` a
compile error. ``sleep=1`` makes launches really take the time they report. ``deterministic=1``
turns it into a stand-in for the simulator: counters instead of times. A plan always draws the same
times in a round.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

import numpy as np

from nqbench.device import Device, Launch, Prepared, Reading, Resources, Sensor
from nqbench.errors import CompileError, DeviceError, DeviceUnavailable, LaunchError
from nqbench.facts import FAKE_NAME, DeviceFacts
from nqbench.plan import Kernel, KernelPlan, MultiLaunchPlan, Outputs, Plan, Variable

FAULTS: Final = ("crash", "hang", "wrong", "fail", "fatal", "refuse", "from_round")
THROTTLE_AFTER: Final = 100
"""Launches in one process before ``throttle`` starts."""
RAMP_DECAY: Final = 0.8
"""What is left of a kernel's extra time from one launch to the next: warm after some 20."""
LONGEST_S: Final = 1e6
"""Limit on times: other workloads have sizes of a million, and 4 to that power overflows."""
SM_MHZ: Final = 1500
KERNELS_SHARE: Final = 0.5
TRANSFER_SHARE: Final = 0.25
"""Of the time of a program's run."""


@dataclass(frozen=True, slots=True)
class FakeModel:
    """Parameters of the fake device; the module's docstring gives their meanings."""

    seed: int = 0
    base: float = 1e-4
    growth: float = 4.0
    spread: float = 0.0
    noise: float = 0.0
    round: float = 0.0
    throttle: float = 1.0
    cold: float = 1.3
    ramp: float = 0.0
    throttle_for: int = 0
    sleep: int = 0
    deterministic: int = 0
    crash: int = 0
    hang: int = 0
    wrong: int = 0
    stale: int = 0
    fail: int = 0
    fatal: int = 0
    refuse: int = 0
    from_round: int = 0

    @classmethod
    def parse(cls, text: str) -> FakeModel:
        """Read ``name=value,...``. Raises ``DeviceUnavailable`` for an unknown name."""
        kinds = {f.name: (int if f.type == "int" else float) for f in fields(cls)}
        values: dict[str, int | float] = {}
        for item in filter(None, text.split(",")):
            name, _, value = item.partition("=")
            try:
                values[name] = kinds[name](value)
            except (KeyError, ValueError):
                known = f"it has {', '.join(kinds)}, each a number"
                raise DeviceUnavailable(f"the fake device has no {item!r}; {known}") from None
        return cls(**values)  # type: ignore[arg-type]  # int or float by field, checked above


class FakeDevice(Device):
    """The test device. The right answer is the plan's ``about["answer"]``, or what it expects."""

    def __init__(self, model: FakeModel | None = None, *, spec: str = "fake") -> None:
        self.model = model or FakeModel()
        self.spec = spec
        self.deterministic = bool(self.model.deterministic)
        self.timed = not self.deterministic
        self.facts = DeviceFacts(
            name=FAKE_NAME,
            kind="sim" if self.deterministic else "cuda",
            compute_capability=(9, 0),
            multiprocessors=4,
            shared_per_block_optin=232448,
            shared_per_multiprocessor=233472,
            shared_reserved_per_block=1024,
        )
        self._expected: int | None = None
        self.round = 0
        self.launches = 0
        self.slowed = False
        """Whether a launch was throttled since the sensor was read last."""

    def identity(self) -> Mapping[str, object]:
        """Name and noise model. Faults stay out: the same device may recover from them."""
        model = {name: value for name, value in asdict(self.model).items() if name not in FAULTS}
        return {"name": self.facts.name, **model}

    def sensor(self) -> FakeSensor:
        """Clocks and heat that follow the noise model. Raises ``DeviceError`` if deterministic."""
        if self.deterministic:
            raise DeviceError("the fake device has no clocks when deterministic")
        return FakeSensor(self)

    def expect(self, answer: int | None) -> None:
        """The right answer of the plan that is prepared next; ``None`` if unknown."""
        self._expected = answer

    def begin_round(self, round_: int) -> None:
        """Take on the noise and the faults of a round (0: verification)."""
        self.round = round_

    def prepare(self, plan: Plan) -> FakePrepared:
        """Take a kernel or a program. Raises ``DeviceError`` for a CPU plan, and as asked."""
        if plan.on_cpu:
            raise DeviceError("the fake device takes kernels only; CPU plans run on the cpu device")
        if self.hit("refuse", plan):
            main = next(iter(plan.kernels.values()))
            raise CompileError(f"{main.source.name}:1: refused, as asked of the fake device")
        # If the answer is unknown, any will do.
        return FakePrepared(self, plan, int(plan.about.get("answer", self._expected or 0)))

    def hit(self, fault: str, plan: KernelPlan | MultiLaunchPlan) -> bool:
        """Whether a fault hits this plan in this round."""
        size = plan.about.get("n")
        return self.round >= self.model.from_round and size == getattr(self.model, fault) != 0


class FakePrepared(Prepared):
    """A plan on the test device."""

    def __init__(self, device: FakeDevice, plan: KernelPlan | MultiLaunchPlan, answer: int) -> None:
        self.transfer_s = None if device.deterministic else 1e-5
        self.resources: Resources = {"registers": 32, "occupancy": 1.0}
        self._device, self._plan, self._answer = device, plan, answer
        self._cold = self._refilled = False
        self._launches = 0
        identity = identity_of(plan)
        model = device.model
        self._random = np.random.default_rng([model.seed, device.round, identity])
        offset = np.random.default_rng([model.seed, device.round]).normal(0.0, model.round)
        own = np.random.default_rng([model.seed, identity]).uniform(-1.0, 1.0)
        steps = float(plan.about.get("n", 8)) - 8
        if model.growth > 1 and model.base > 0:
            steps = min(steps, math.log(LONGEST_S / model.base, model.growth))
        growth = float(model.growth**steps)
        self._base_s: float = model.base * growth * (1 + model.spread * float(own))
        self._offset = 0.0 if device.deterministic else float(offset)

    def launch(self, timeout_s: float | None = None) -> Launch:  # noqa: ARG002 (a hang has no limit)
        """Draw a time from the model, or misbehave as asked."""
        device, plan = self._device, self._plan
        if device.hit("crash", plan):
            os.kill(os.getpid(), signal.SIGKILL)
        while device.hit("hang", plan):
            time.sleep(1.0)
        if device.hit("fail", plan):
            raise LaunchError("launch failed, as asked of the fake device")
        if device.hit("fatal", plan):
            error = LaunchError("illegal address, as asked of the fake device")
            error.fatal = True
            raise error
        device.launches += 1
        if device.deterministic:
            work = round(self._base_s * 1e9)
            return Launch(None, {"warp_instructions": work, "bank_conflicts": 0})
        kernel_s = self._draw()
        if device.model.sleep:
            time.sleep(kernel_s)
        return Launch(kernel_s)

    def _draw(self) -> float:
        model, factor = self._device.model, 1.0
        error = float(self._random.normal(0.0, model.noise))
        kernel_s = self._base_s * math.exp(self._offset + error)
        after, lasts = self._device.launches - THROTTLE_AFTER, model.throttle_for
        if model.throttle != 1.0 and after > 0 and (lasts == 0 or after <= lasts):
            factor *= model.throttle
            self._device.slowed = True
        if self._cold:
            factor *= model.cold
        self._launches += 1
        return kernel_s * factor * (1 + model.ramp * RAMP_DECAY ** (self._launches - 1))

    def phases(self, timeout_s: float | None = None) -> Mapping[str, float]:
        """One more run of a program: its kernels share ``KERNELS_SHARE`` of the time evenly."""
        total_s = self.launch(timeout_s).kernel_s or 0.0
        kernel_s = KERNELS_SHARE * total_s
        names = self._plan.kernels
        return {
            **dict.fromkeys(names, kernel_s / len(names)),
            "transfer": TRANSFER_SHARE * total_s,
            "kernel": kernel_s,
        }

    def refill(self, data: Outputs, *, again: bool = True) -> bool:  # noqa: ARG002
        """Only where ``stale`` asks for it: it costs a launch, and with it a time of the model."""
        self._refilled = again
        return self._device.hit("stale", self._plan)

    def flush_l2(self) -> None:
        """From now on launches take ``cold`` times as long."""
        self._cold = True

    def known_answer(self) -> int:
        """The known answer, or one more where a wrong one was asked for."""
        wrong = self._device.hit("wrong", self._plan)
        return self._answer + (wrong or (self._refilled and self._device.hit("stale", self._plan)))

    def fetch(self) -> Outputs:
        """Raise ``DeviceError``: no kernel ran, so there are no buffers to fetch."""
        raise DeviceError("the fake device runs no kernel and has no output buffers")


class FakeSensor(Sensor):
    """The state of the test device: constant except for ``throttle``."""

    def __init__(self, device: FakeDevice) -> None:
        self._device = device

    def read(self) -> Reading:
        """Full clocks, or those of a chip too hot since the last reading."""
        device = self._device
        slowed, device.slowed = device.slowed, False
        return Reading(
            sm_mhz=round(SM_MHZ / device.model.throttle) if slowed else SM_MHZ,
            memory_mhz=2000,
            temperature_c=90 if slowed else 50,
            power_mw=300_000,
            energy_mj=30 * device.launches,
            reasons=("hw_thermal_slowdown",) if slowed else ("gpu_idle",),
        )


def identity_of(plan: KernelPlan | MultiLaunchPlan) -> int:
    """A number for what is launched and how, without source text and contents of buffers."""
    buffers = [[b.name, b.dtype, b.length] for b in plan.buffers]
    if isinstance(plan, KernelPlan):
        *what, how = _launched(plan)
        parts = [*what, buffers, how]
    else:
        kernels = {name: _launched(kernel) for name, kernel in plan.kernels.items()}
        parts = [plan.name, str(plan.arguments), kernels, buffers]
    # The digest in between is historic: the noise of the published self-test depends on it.
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return zlib.crc32(digest.encode())


def _launched(kernel: Kernel) -> list[object]:
    arguments = [
        str(a) if isinstance(a, str | Variable) else [a.dtype.str, a.item()]
        for a in kernel.arguments
    ]
    return [
        *(kernel.source.name, kernel.entry, kernel.options, arguments),
        [kernel.grid, kernel.block, kernel.shared_bytes, kernel.cache],
    ]
