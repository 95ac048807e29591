"""Jobs in the runner's own process: no isolation, for tests and for measuring the overhead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nqbench.measure.worker.pool import Job, Reply
from nqbench.measure.worker.session import Session


class Inline:
    """A device in this process. A crash or a hang of the device is one of the runner."""

    def __init__(self, spec: str) -> None:
        self._session = Session(spec)
        self.hello: Mapping[str, Any] = self._session.hello()

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Reply]]:
        """Carry out jobs one after the other."""
        for job in jobs:
            fields = self._session.block(job.request)
            fields.pop("fatal")
            yield job, Reply(fields, self.hello["pid"])

    def close(self) -> None:
        """Release the device."""
        self._session.close()
