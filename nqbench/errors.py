"""Every error that nqbench raises on purpose: an ``NqbenchError`` is one sentence for a user.

Exit codes: 2 for ``StudyError``, ``InfeasibleError``, ``DeviceUnavailable`` and ``FolderRefused``,
before which nothing was run; 1 for the others. Those of a single measurement become its status.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

LaunchStatus = Literal["launch_error", "crashed", "wrong", "check_error"]


class NqbenchError(Exception):
    """Base of all errors meant for a user. ``str(error)`` is one sentence."""

    exit_code: ClassVar[int] = 1


class DamageWarning(UserWarning):
    """Something that was read is damaged and left out; ``str`` is one sentence."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """A position in a text file; ``line`` counts from 1, and is 0 where ``path`` says it all."""

    path: Path | str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


class StudyError(NqbenchError):
    """A study file or a command line that cannot be carried out; nothing was run.

    Where no place is known yet, ``factor`` names the factor with the wrong level, or ``keys`` lead
    to the value in the study.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        place: FileLine | None = None,
        factor: str = "",
        keys: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place
        self.factor = factor
        self.keys = keys


class NothingRuns(StudyError):
    """A study without a point that the device can run; others of several may have some."""


class InfeasibleError(NqbenchError):
    """A configuration that makes no sense or exceeds a limit; the message names the limit.

    ``factor`` names the factor to change, or ``keys`` lead to the value in the study, if one of
    them is known: a study then points at its line.
    """

    exit_code = 2

    def __init__(self, message: str, factor: str = "", keys: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.factor = factor
        self.keys = keys


class WrongDeviceError(InfeasibleError):
    """A kernel on a device that cannot run its kind: any on ``cpu``, dynamic parallelism in the
    simulator. Such a point is always skipped."""


class CompileError(NqbenchError):
    """The CUDA compiler refused a kernel; the message carries its file:line."""

    status: Final = "compile_error"


class CheckError(NqbenchError):
    """A right answer that cannot be made, or does not fit what it is compared with: the check is
    wrong, not the kernel."""

    status: Final = "check_error"


class DeviceError(NqbenchError):
    """A device failed, or is missing something."""


class DeviceUnavailable(DeviceError):
    """The device asked for is not on this machine, or a package for it is missing."""

    exit_code = 2


class DeviceLost(DeviceError):
    """A device that worked cannot be opened again; what was measured is kept."""


class LaunchError(DeviceError):
    """A kernel launch failed.

    ``fatal``   the process can launch nothing more (a poisoned context) and must be replaced
    ``status``  what the measurement ends with
    ``printed`` what the kernel had printed before
    """

    fatal: bool = False
    printed: str = ""
    status: LaunchStatus = "launch_error"


class KernelFault(LaunchError):
    """A fault inside a kernel, found by the simulator, with address, lane and PTX line.

    ``finding``  the same as data (``nqbench.simulator.findings``); ``None`` before a launch
    """

    finding: Any = None


class ProgramFault(LaunchError):
    """An external program that could not be started, crashed, or did not print what it should."""

    def __init__(self, message: str, status: LaunchStatus = "launch_error") -> None:
        super().__init__(message)
        self.status = status


class LaunchTimeout(DeviceError):
    """A launch did not end within its limit.

    ``fatal``    the kernel still runs: the process must be replaced
    ``finding``  where it stands, if the simulator knows (``nqbench.simulator.findings``)
    """

    fatal: bool = False
    finding: Any = None
    status: Final = "timeout"


class WrongAnswer(NqbenchError):
    """A launch whose answer differs from the known one; none of its results can be trusted."""


class StoreError(NqbenchError):
    """A run folder that cannot be read or written; the message says what was kept."""


class NewerRecord(StoreError):
    """A record of a later nqbench: not damaged, and not to be left out."""


class FolderRefused(StoreError):
    """A folder named on the command line that cannot serve as asked; nothing was run."""

    exit_code = 2


class InterchangeError(NqbenchError):
    """A file of another program that cannot be understood; names the place and its value."""


class AnalysisError(NqbenchError):
    """An analysis that the recorded data do not support; the message says what is missing."""
