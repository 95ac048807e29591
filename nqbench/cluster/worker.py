"""The command ``nqbench worker``: this computer's devices as Dask workers of a scheduler."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from nqbench.cluster.connect import (
    CONNECT_S,
    LOOPBACK,
    UNREACHABLE,
    WorkerPart,
    check_address,
    is_loopback,
    machine_workers,
    need_certificates,
    need_dask,
    quiet_dask,
    unreachable,
)


def serve(scheduler: str, gpus: str, insecure: bool, say: Callable[[str], None]) -> None:
    """Run until the scheduler ends or Ctrl-C. Raises ``StudyError`` or ``DeviceUnavailable``."""
    check_address(scheduler, insecure)
    need_dask()
    need_certificates(scheduler, "worker")
    parts = machine_workers(gpus)
    with quiet_dask(workers=True), suppress(KeyboardInterrupt):  # the usual end of a worker
        asyncio.run(_serve(scheduler, parts, say))


async def _serve(scheduler: str, parts: Sequence[WorkerPart], say: Callable[[str], None]) -> None:
    from distributed import Nanny

    host = LOOPBACK if is_loopback(str(urlsplit(scheduler).hostname)) else None
    nannies: list[Any] = []
    try:
        for part in parts:
            nanny = Nanny(scheduler, host=host, **part.options())
            nannies.append(nanny)
            try:
                await asyncio.wait_for(nanny, 6 * CONNECT_S)
            except UNREACHABLE as error:
                raise unreachable(scheduler, error) from error
            devices = ", ".join(f"{o.spec} ({o.name}{o.uuid and ' '}{o.uuid})" for o in part.offers)
            say(f"worker on {platform.node()}: {devices}; {part.cores} cores that simulate")
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
        say("ended by the scheduler")
    finally:
        await asyncio.gather(*(nanny.close() for nanny in nannies), return_exceptions=True)
