"""A device that answers from a recorded run, so that tables and tutorials work on a laptop.

A plan is recognised by its fingerprint, which the runner stores with every record. A replay says
nothing new: it returns the recorded kernel times, counters and answers, and refuses any plan that
the run does not hold.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from nqbench.devices.base import Device, Launch, Prepared
from nqbench.errors import DeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import (
    INPUT,
    Argument,
    CpuPlan,
    Kernel,
    KernelPlan,
    Outputs,
    Plan,
    ProgramPlan,
    Variable,
)
from nqbench.point import COLD, L2
from nqbench.record import Record
from nqbench.runs.folder import RECORDS, newest, read_manifest, read_records

FINGERPRINT: Final = "plan"
"""Name under which ``Record.about`` holds the fingerprint."""


def fingerprint(plan: Plan) -> str:
    """Text that tells a plan from another: what is launched and how, not the kernel's source.

    Kernel instance, options, geometry, scalars and the shapes of the buffers; or the host function
    and its arguments. The source text and the contents of the buffers stay out, so that a recorded
    run can be replayed after the kernel file was edited; a plan whose data are chosen apart from
    their size names them (``about["input"]``).
    """
    if isinstance(plan, CpuPlan):
        parts: object = [plan.name, [_argument(a) for a in plan.arguments]]
    elif isinstance(plan, ProgramPlan):
        parts = _program_parts(plan)
    else:
        parts = _kernel_parts(plan)
        if plan.about.get(L2) == COLD:  # the same launch, measured in another way
            parts = [parts, COLD]
    if INPUT in plan.about:
        parts = [parts, plan.about[INPUT]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _kernel_parts(plan: KernelPlan) -> object:
    return [
        plan.source.name,
        plan.entry,
        plan.options,
        [_kernel_argument(a) for a in plan.arguments],
        [[b.name, b.dtype, b.length] for b in plan.buffers],
        [plan.grid, plan.block, plan.shared_bytes, plan.cache],
    ]


def _program_parts(plan: ProgramPlan) -> object:
    return [
        plan.name,
        [_argument(a) for a in plan.arguments],
        [[name, _launch_parts(kernel)] for name, kernel in plan.kernels.items()],
        [[b.name, b.dtype, b.length] for b in plan.buffers],
    ]


def _launch_parts(kernel: Kernel) -> object:
    return [
        kernel.source.name,
        kernel.entry,
        kernel.options,
        [_kernel_argument(a) for a in kernel.arguments],
        [kernel.grid, kernel.block, kernel.shared_bytes, kernel.cache],
    ]


def _kernel_argument(argument: Argument | Variable) -> object:
    if isinstance(argument, Variable):
        return {argument.name: argument.dtype}
    return argument if isinstance(argument, str) else [argument.dtype.str, argument.item()]


def _argument(argument: object) -> object:
    """An argument of a host function; of an array its type and shape, as of a buffer."""
    if isinstance(argument, np.ndarray):
        return [argument.dtype.str, list(argument.shape)]
    return argument.item() if isinstance(argument, np.generic) else argument


def facts_from_json(data: Mapping[str, Any]) -> DeviceFacts:
    """Inverse of ``DeviceFacts.as_dict``; facts that this version does not know are left out."""
    known = {f.name for f in fields(DeviceFacts)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
        if name in known
    }
    return DeviceFacts(**values)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The usable blocks of one plan, by round."""

    blocks: Mapping[int, Record]

    def of_round(self, round_: int) -> Record:
        """The block of a round; the nearest there is if that round has none."""
        return self.blocks[min(self.blocks, key=lambda r: (abs(r - round_), r))]


class ReplayDevice(Device):
    """Answers with the samples, counters and answers of a run folder."""

    cpu_plans = True
    """Baselines on the processor are replayed too."""

    def __init__(self, path: Path | str) -> None:
        """Read the run. Raises ``StoreError`` if it is none."""
        self.path = Path(path)
        self.spec = f"replay:{path}"
        manifest = read_manifest(self.path)
        device = manifest["device"]
        self.facts = facts_from_json(device["facts"])
        self.timed = bool(device["timed"])
        self.deterministic = bool(device["deterministic"])
        self._recorded_identity: Mapping[str, object] = device["identity"]
        self._round = 1
        self._plans = _by_plan(newest(read_records(self.path).records).values())
        self._digest = hashlib.sha256((self.path / RECORDS).read_bytes()).hexdigest()[:16]

    def identity(self) -> Mapping[str, object]:
        """The recorded device, marked as a replay, and a digest of the records."""
        return {**self._recorded_identity, "replay": True, "records_sha256": self._digest}

    def begin_round(self, round_: int) -> None:
        """Answer from this round on with its own blocks."""
        self._round = round_

    def prepare(self, plan: Plan) -> ReplayPrepared:
        """Find the plan's blocks. Raises ``DeviceError`` if the run holds none that is ok."""
        found = self._plans.get(fingerprint(plan))
        if found is None:
            raise DeviceError(
                f"{self.path} holds no successful block of {plan.name};"
                " replay the study that made it, or measure this point on a real device"
            )
        return ReplayPrepared(found.of_round(self._round))

    def close(self) -> None:
        """Nothing to release."""


def _by_plan(records: Iterable[Record]) -> dict[str, _Recorded]:
    grouped: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in records:
        measured = record.round > 0 and (record.samples_s or record.counters)
        if record.status == "ok" and measured and FINGERPRINT in record.about:
            # The same plan may stand in two sweeps: the first one recorded answers for both.
            grouped[record.about[FINGERPRINT]].setdefault(record.round, record)
    return {plan: _Recorded(blocks) for plan, blocks in grouped.items()}


class ReplayPrepared(Prepared):
    """One recorded block; launches return its samples in order, again from the first at the end."""

    def __init__(self, record: Record) -> None:
        self.transfer_s = record.phases.get("transfer")
        self.resources: Mapping[str, int | float | str] = record.resources
        self._record = record
        self._next = 0

    def launch(self, timeout_s: float | None = None) -> Launch:  # noqa: ARG002 (the protocol has it)
        """The next recorded sample; the recorded counters."""
        samples = self._record.samples_s
        kernel_s = samples[self._next % len(samples)] if samples else None
        self._next += 1
        return Launch(kernel_s, self._record.counters or None)

    def phases(self, timeout_s: float | None = None) -> Mapping[str, float]:  # noqa: ARG002
        """The recorded phases; ``other`` and ``total`` of a program follow from them again."""
        recorded = self._record.phases
        if "other" not in recorded:
            return {}
        left = ("split", "other", "total") if self._record.device == "cpu" else ("split", "other")
        return {n: s for n, s in recorded.items() if n not in left}

    def flush_l2(self) -> None:
        """Nothing to do: the block that was found is one with a cold cache."""

    def known_answer(self) -> int | None:
        """The answer that was recorded; the runner checks it like any other."""
        return None if self._record.answer is None else int(self._record.answer)

    def fetch(self) -> Outputs:
        """Raises ``DeviceError``: a run keeps answers, not output buffers."""
        raise DeviceError("a recorded run holds the answer of a plan, not its output buffers")

    def close(self) -> None:
        """Nothing to free."""
