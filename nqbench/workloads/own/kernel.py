"""A workload made from a study: the block ``kernel`` and a .cu file, without any Python.

The block is plain data, so that it travels to workers and stands in a run's manifest. Reports need
nothing else; plans also need the folder of the study, from which its files are named.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nqbench.errors import CheckError, InfeasibleError, StudyError, WrongDeviceError
from nqbench.facts import DeviceFacts
from nqbench.plan import FILLS, Buffer, Outputs, Plan
from nqbench.point import FactorLevels
from nqbench.simulator.layout import UNDEFINED_WORD
from nqbench.system.suggest import listing, suggestion
from nqbench.vocabulary import ERRORS
from nqbench.workloads.base import KERNEL, Compared, Resolved, Workload
from nqbench.workloads.levels import given_levels
from nqbench.workloads.own import arrays
from nqbench.workloads.own.block import NOT_COMPUTED, Block, Part
from nqbench.workloads.own.launch import OwnCheck, OwnLaunch

Array = NDArray[Any]
HEAD: Final = 1024
"""Elements that tell most contents from the right ones."""
ROUNDINGS: Final = 256
"""Last places that sums of many terms, and functions of --use_fast_math, may lose."""


class OwnKernel(Workload):
    """The workload of one study's block."""

    no_variants = "is a kernel of the user's own"

    def __init__(
        self, study: str, data: Part, folder: Path | None = None, lines: Part | None = None
    ) -> None:
        """``folder`` is that of the study; without it nothing can be planned. For ``lines`` see
        ``Block``."""
        self.name = f"{KERNEL}:{study}"
        self.block = Block(data, folder, lines)
        if not self.block.checks:
            self.doubt = "the kernel has no 'check', so nothing tells whether its results are right"
        if folder is not None:
            self.include = tuple(folder / name for name in data.get("include", ()))
        named = self.block.factors
        self.factors = {name: self.block.factor(name) for name in named}
        self.defaults = {n: given["default"] for n, given in named.items() if "default" in given}
        self.systems = {study: {}, **data.get("systems", {})}
        self._kept = arrays.Kept()

    def with_contents(self, given: Mapping[str, Array]) -> OwnKernel:
        """The same kernel with a caller's arrays in its buffers and module variables.

        Raises ``StudyError`` for a name that it has not.
        """
        known = [name for name, _ in self.block.arrays()]
        for name in given:
            if name not in known:
                said = suggestion(name, known) if known else "it has none"
                raise StudyError(f"the kernel has no buffer {name!r}; {said}")
        made = copy(self)
        made.block, made._kept = copy(self.block), arrays.Kept()
        made.block.contents = given
        return made

    # What a study asks of a workload.

    def resolve(self, given: FactorLevels, system: str | None, device: DeviceFacts) -> Resolved:
        """Every factor with its level, the block's ``values``, and the size of the launch."""
        if device.kind == "cpu":
            raise WrongDeviceError("a kernel needs a GPU or the simulator; use cuda:0 or sim")
        explicit = given_levels(self.name, self.factors, self.systems, given, system)
        levels = super().resolve(explicit, system, device).factors
        for name in self.factors:
            if name not in levels:
                raise StudyError(
                    f"the factor '{name}' has no level here; give it under fixed or matrix, or a"
                    " default in the kernel's factors"
                )
        launch = OwnLaunch(self.block, levels, device)
        launch.check(device)
        grid, block, shared = launch.largest
        blocks = math.prod(grid)
        derived = {"blocks": blocks, "threads": blocks * math.prod(block)}
        derived |= {"shared_bytes": shared} if shared else {}
        derived |= {name: launch.numbers[name] for name in self.block.values}
        return Resolved(levels, derived)

    def plan(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan:
        """One launch of the kernel with the study's buffers. Raises ``InfeasibleError``."""
        try:
            resolved = self.resolve(factors, system, device)
            launch = OwnLaunch(self.block, resolved.factors, device)
            return launch.plan(self._kept, device, resolved.derived)
        except StudyError as error:  # numpy, or a file: known only with the point's numbers
            if self.block.contents:
                raise  # one launch from Python: the caller's arrays are at fault
            raise InfeasibleError(error.message) from error

    def again(self, factors: FactorLevels, system: str | None, device: DeviceFacts) -> Plan | None:
        """The plan with what other seeds give, unless what is right there is not known."""
        seeded = any("seed" in given for given in self.block.buffers.values())
        if not seeded or any({"reference", "file"} & c.keys() for c in self.block.checks.values()):
            return None
        resolved = self.resolve(factors, system, device)
        launch = OwnLaunch(self.block, resolved.factors, device)
        return launch.plan(self._kept, device, resolved.derived, again=True)

    def work(self, factors: FactorLevels) -> float:
        """The block's ``work``; else the number of threads."""
        try:
            launch = OwnLaunch(self.block, factors, None)
            if "work" in self.block.data:
                return float(launch.value(("work",), self.block.data["work"]))
            return float(sum(math.prod(g) * math.prod(b) for g, b, _ in launch.sizes))
        except (StudyError, InfeasibleError, TypeError, ValueError, OverflowError):
            return 1.0  # another program's point, or an expression that reads the device

    def identity(self) -> Mapping[str, Any]:
        """The parts of the block that can change a number."""
        return {key: part for key, part in self.block.data.items() if key not in NOT_COMPUTED}

    def files(self) -> Sequence[Path]:
        """The files that the block names."""
        return self.block.files()

    # The check.

    def reference(self, factors: FactorLevels) -> FactorLevels | None:
        """The point whose outputs are the right ones of this one; ``None`` if there is none, or it
        is that point itself."""
        for given in self.block.checks.values():
            if "reference" in given:
                levels = {**factors, **given["reference"]}
                return levels if levels != dict(factors) else None
        return None

    def compared(self, plan: Plan, outputs: Outputs, reference: Outputs | None) -> Compared | None:
        """How many elements of the checked buffers are right, and what the first wrong one is."""
        if plan.on_cpu or not isinstance(plan.check, OwnCheck):
            return None  # another program's
        right = total = 0
        fault, again, errors = "", False, np.zeros(len(ERRORS))
        idle = True
        blank = {buffer.name for buffer in plan.buffers if buffer.blank}
        for name, given in self.block.checks.items():
            if "reference" in given and reference is None:
                continue
            found, expected = outputs[name], self._expected(name, given, plan.check, reference)
            idle &= passes(plan.check.before(name), expected, given)
            self._check_tolerance(name, given, plan.check, expected)
            wrong = wrong_elements(found, expected, given, blank=name in blank)
            total, right = total + expected.size, right + expected.size - wrong.size
            errors = np.maximum(errors, largest_errors(found, expected))
            if name in blank and found.dtype.kind not in "fc":
                again |= bool((unwritten(found) & (found == expected)).any())
            if wrong.size and not fault:
                shaped = found.reshape(plan.check.shapes[name])
                fault = described(name, shaped, expected, wrong, given, blank=name in blank)
        if total and idle:
            raise CheckError(
                f"the check of {listing(self.block.checks, 'and')}: a kernel that does nothing"
                " would pass, as the right values stand there before the launch; give other"
                " contents, or none"
            )
        changed = _changed(plan.buffers, outputs, self.block.checks)
        if not total and not changed:
            return None
        named = dict(zip(ERRORS, errors.tolist(), strict=True))
        return Compared(right, total, fault or changed, again, named)

    def _check_tolerance(self, name: str, given: Part, check: OwnCheck, expected: Array) -> None:
        """Refuse a tolerance that takes for right what the kernel did not compute."""
        if not (given.get("relative") or given.get("absolute")):
            return
        zeros = np.zeros(expected.shape, expected.dtype)
        before = ((f"'{n}' as it is before the launch", check.before(n)) for n in check.shapes)
        for what, contents in (("zeros", zeros), *before):
            if passes(contents, expected, given) and not passes(contents, expected, {}):
                allows = f"allows {tolerance(given)}, with which {what} would pass"
                raise CheckError(f"the check of '{name}' {allows}; give a smaller tolerance")

    def _expected(
        self, name: str, given: Part, check: OwnCheck, reference: Outputs | None
    ) -> Array:
        """The right contents of a checked buffer. Raises ``CheckError`` if there are none."""
        form = check.dtypes[name], check.shapes[name]
        known = {**check.contents, **check.numbers}
        zeros = {n: np.zeros(check.shapes[n], check.dtypes[n]) for n in check.zeros}
        try:
            if "reference" in given:
                assert reference is not None
                return arrays.fitted(reference[name], *form, "the reference has", exact=True)
            right = partial(check.point.array, given, form, zeros | known, exact=True)
            return self._kept.get(("right", name, *form), [*known.values()], right).reshape(-1)
        except StudyError as error:
            raise CheckError(f"the check of '{name}': {error.message}") from error


def _changed(buffers: Sequence[Buffer], outputs: Outputs, checks: Mapping[str, Any]) -> str:
    """Which buffer with contents the kernel changed though it is not put back; empty if none."""
    for buffer in buffers:
        if buffer.data is None or buffer.restore or buffer.name in checks:
            continue
        if buffer.name in outputs and outputs[buffer.name].tobytes() != buffer.data.tobytes():
            said = "so every launch would start from what the one before left: say `restore: true`"
            return f"the kernel changes '{buffer.name}', {said} there"
    return ""


def wrong_elements(
    found: Array, expected: Array, given: Mapping[str, Any], *, blank: bool = False
) -> Array:
    """Indices of the elements beyond the tolerance. A NaN is right where a NaN is expected, unless
    it is the fill of a buffer that was ``blank``."""
    relative, absolute = float(given.get("relative", 0)), float(given.get("absolute", 0))
    with np.errstate(all="ignore"):
        right = found == expected
        if not right.all() and found.dtype.kind in "fc":
            both = np.isnan(found) & np.isnan(expected)
            right |= both & ~unwritten(found) if blank and both.any() else both
        if not right.all() and (relative or absolute):
            right |= np.isclose(found, expected, rtol=relative, atol=absolute)
    return np.flatnonzero(~right)


def passes(contents: Array | None, expected: Array, given: Mapping[str, Any]) -> bool:
    """Whether contents that the kernel did not make would pass for the right ones; the first
    elements mostly tell."""
    if contents is None or contents.size != expected.size:
        return False
    contents = contents.reshape(-1)
    heads = contents[:HEAD], expected[:HEAD]
    return not any(wrong_elements(*two, given).size for two in (heads, (contents, expected)))


def largest_errors(found: Array, expected: Array) -> list[float]:
    """The largest absolute error, and the largest relative one where the right value is not 0; of
    elements that are finite on both sides."""
    if np.array_equal(found, expected):
        return [0.0, 0.0]
    exact = expected.astype(np.result_type(expected, np.float64))
    with np.errstate(all="ignore"):
        error = np.abs(found - exact)
        relative = error / np.abs(exact)
    return [float(e.max(initial=0, where=np.isfinite(e))) for e in (error, relative)]


def described(
    name: str, found: Array, expected: Array, wrong: Array, given: Mapping[str, Any], *, blank: bool
) -> str:
    """The first wrong element of a buffer in its shape, and what most likely is the reason.

    ``blank``: before the launch it held what :func:`unwritten` recognizes.
    """
    first = int(wrong[0])
    where = ", ".join(map(str, np.unravel_index(first, found.shape)))
    place, found, expected = f"{name}[{where}]", found.reshape(-1), expected.reshape(-1)
    value, right = found[first], expected[first]
    left = unwritten(found)[wrong] if blank else np.zeros(wrong.size, bool)
    if left[0]:
        more = f" and {left.sum() - 1:,} more were" if left.sum() > 1 else " was"
        return f"{place}{more} never written (right: {right!s})"
    return f"{place} is {value!s}, not {right!s}{_rounding(found, expected, given)}"


def unwritten(found: Array) -> Array:
    """Which elements still hold what nqbench fills a buffer without contents with."""
    kind, size = found.dtype.kind, min(found.dtype.itemsize, 8)
    parts = np.ascontiguousarray(found).view(f"u{size}")
    left = np.zeros(found.size, bool)
    for word in {UNDEFINED_WORD, *itertools.chain(*(FILLS[k] for k in FILLS if kind in k))}:
        pattern = np.array([word, word], np.uint32).view(parts.dtype)
        same = np.empty(parts.size, bool)
        for place, part in enumerate(pattern):
            same[place :: len(pattern)] = parts[place :: len(pattern)] == part
        # A complex number of 16 bytes has two parts.
        left |= same[::2] & same[1::2] if parts.size > found.size else same
    return left


def _rounding(found: Array, expected: Array, given: Mapping[str, Any]) -> str:
    """A tolerance that would do, if no difference is larger than rounding explains."""
    if found.dtype.kind not in "fc" or not (np.isfinite(found) & np.isfinite(expected)).all():
        return ""
    absolute, relative = largest_errors(found, expected)
    eps = float(np.finfo(found.dtype).eps)
    limit = min(ROUNDINGS * eps, eps**0.5)
    for key, largest, most in (
        ("relative", math.inf if found[expected == 0].any() else relative, limit),
        ("absolute", absolute, limit * float(np.abs(expected).max())),
    ):
        if 0 < largest <= most:
            asked = tolerance(given)
            asks = f"allows {asked}" if asked else "asks for equal bits"
            enough = 10.0 ** math.ceil(math.log10(largest))
            said = f" (largest {key} difference {_number(largest)}; the check {asks};"
            return f"{said} {key}: {_number(enough)}?)"
    return ""


def tolerance(given: Mapping[str, Any]) -> str:
    """What a check allows, as a study has it; empty if it asks for equal bits."""
    return ", ".join(f"{k}: {_number(given[k])}" for k in ("relative", "absolute") if k in given)


def _number(value: float) -> str:
    """As a study has it: ``1.4e-7``."""
    return f"{float(value):.2g}".replace("e-0", "e-")
