"""What a program (``plan.ProgramPlan``) may ask of the place where it runs.

A GPU and the simulator both offer it, so that one host function drives either. Every operation is
queued in order; only ``download`` and ``synchronize`` wait.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nqbench.facts import DeviceFacts


class Machine(Protocol):
    """One run of a program. Names are those of the plan's buffers and kernels.

    In a run that is split into phases every operation waits for its end: a kernel counts under its
    own name (by device events), the rest under ``allocate``, ``transfer``, ``reduce`` and ``free``
    (by the clock). A timed run has none of this.
    """

    facts: DeviceFacts

    def allocate(self, *names: str) -> None:
        """Allocate buffers that are ``per_run``; the others exist already."""

    def free(self, *names: str) -> None:
        """Free buffers that are ``per_run``."""

    def upload(self, name: str, data: NDArray[Any] | None = None) -> None:
        """Copy ``data`` (default: the plan's) into the start of a buffer."""

    def clear(self, name: str) -> None:
        """Set every byte of a buffer to zero."""

    def launch(self, kernel: str, **variables: np.generic | int | float) -> None:
        """Queue a kernel; ``variables`` gives each of its ``Variable`` arguments."""

    def download(self, name: str, count: int | None = None) -> NDArray[Any]:
        """The first ``count`` elements (default: all) of a buffer, once all before is done."""

    def synchronize(self) -> None:
        """Wait until everything queued is done."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Host work that counts under this name where phases are told apart."""

    def group(self, name: str) -> AbstractContextManager[None]:
        """A phase of everything inside, operations too, which count under their own names as well.

        ``name`` is one of the plan's ``groups``. The last operation inside must be one that waits
        (``download`` or ``synchronize``), and groups do not hold one another.
        """

    def keep(self, name: str, value: NDArray[Any]) -> None:
        """Add an array to the outputs of this run (beside the output buffers)."""
