"""The workers of a cluster: which ones are there, and which of them are fit for use."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nqbench.cluster import host
from nqbench.errors import DeviceLost

if TYPE_CHECKING:
    from distributed import Client

LOOK_S: Final = 1.0
"""Seconds between two looks at which workers there are."""
LOST_S: Final = 20.0
"""A worker that is gone for so long does not come back: Dask's nanny replaces one in seconds."""


@dataclass(frozen=True)
class Member:
    """A worker of the cluster, as it announced itself (``host.announce``)."""

    address: str
    described: dict[str, Any]

    @property
    def host(self) -> str:
        """Name of its machine."""
        return str(self.described["host"])

    @property
    def cores(self) -> int:
        """Its cores."""
        return int(self.described["cores"])

    @property
    def label(self) -> str:
        """The worker for people."""
        return f"worker {self.address} on {self.host}"


class Cluster:
    """A connection to a cluster, and the workers that are fit for use.

    ``notice`` takes one sentence on each worker that is left out; ``run`` names this run.
    """

    def __init__(
        self, client: Client, notice: Callable[[str], object], lost_s: float = LOST_S
    ) -> None:
        self.client, self.lost_s = client, lost_s
        self.run = secrets.token_hex(8)
        self.members: dict[str, Member] = {}
        self.stopped = False
        self.notice = notice
        self.refused: dict[str, str] = {}
        self._lock = threading.RLock()
        self._looked = -math.inf

    def look(self) -> dict[str, Member]:
        """The workers now, by address. Raises ``DeviceLost`` if the scheduler is out of reach."""
        with self._lock:
            if self.stopped:
                raise DeviceLost("the run was stopped")
            if time.monotonic() - self._looked < LOOK_S:
                return self.members
            self._looked = time.monotonic()
            self.check_scheduler()
            try:
                known = self.client.scheduler_info(n_workers=-1)["workers"]
            except (OSError, TimeoutError) as error:
                raise _scheduler_lost() from error
            new = [address for address in known if address not in {**self.members, **self.refused}]
            found = {a: member for a, member in self.members.items() if a in known}
            self.members = {**found, **self._admit(new)}
            return self.members

    def evict(self, address: str, reason: str) -> None:
        """Use a worker no more whose answers cannot be trusted."""
        with self._lock:
            member = self.members.pop(address, None)
            if member is None or address in self.refused:
                return
            self.refused[address] = reason
        self.notice(f"{member.label} is taken out: {reason}")
        self.client.retire_workers([address])

    def end_compilers(self, addresses: Sequence[str]) -> None:
        """End the processes that compile on some workers: they take much memory."""
        with suppress(OSError):
            self.client.run(host.end, self.run, compilers=True, workers=list(addresses))

    def stop(self) -> None:
        """End what this run does on the workers."""
        self.stopped = True
        with suppress(Exception):  # without a scheduler the workers end it themselves
            self.check_scheduler()
            self.client.run(host.end, self.run, on_error="ignore")

    def check_scheduler(self) -> None:
        """Raise ``DeviceLost`` without a scheduler."""
        if self.client.status != "running":
            raise _scheduler_lost()

    def _admit(self, addresses: Sequence[str]) -> dict[str, Member]:
        """Newly found workers, if they run the same software."""
        if not addresses:
            return {}
        replies = self.client.run(host.announce, workers=list(addresses), on_error="return")
        own, found = host.software(), {}
        for address, described in replies.items():
            if isinstance(described, OSError):
                continue  # it left meanwhile
            if reason := unfit(described, own):
                self.refused[address] = reason
                self.notice(f"worker {address} is left out: {reason}")
            else:
                found[address] = Member(address, described)
        return found


def _scheduler_lost() -> DeviceLost:
    return DeviceLost(
        "the scheduler of the cluster is lost; what was finished is kept, run again to resume"
    )


def unfit(described: Any, own: dict[str, str]) -> str:
    """Why a worker cannot take part; empty if it can."""
    if isinstance(described, BaseException):
        return f"it cannot say what it has ({described}); install nqbench[cluster] there"
    theirs = described["software"]
    names = [n for n in {**own, **theirs} if own.get(n) != theirs.get(n)]
    if not names:
        return ""
    listed = ", ".join(
        f"{n} {theirs.get(n) or 'nothing'} instead of {own.get(n) or 'nothing'}" for n in names[:3]
    )
    return (
        f"{described['host']} has {listed}, and records must not depend on where a point ran;"
        " install the same there"
    )
