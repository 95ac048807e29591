"""A long count on the CPU that survives: finished chunks are appended to a file and flushed.

Whatever ends the process costs the chunks in flight; the same command goes on with the others. The
chunks of a board do not depend on the number of cores, so another computer may go on, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Final

import numpy as np

from nqbench.errors import StudyError
from nqbench.system.machine import cpu_count

DEPTH: Final = 4
"""Rows of the jobs that are shared out: 5,382 jobs at N = 15, 118,902 at N = 27."""

CHUNKS: Final = 1024
"""Of a board: each chunk in flight is about a tenth of a percent of the work."""


@dataclass(frozen=True, slots=True)
class Chunked:
    """The number of solutions, the chunks in all, and those that the file held already."""

    solutions: int
    chunks: int
    resumed: int


def count_in_chunks(n: int, log: Path, threads: int = 0) -> Chunked:
    """Count the placements of ``n >= 7`` queens on ``threads`` cores (0: all), resuming ``log``.

    Raises ``StudyError`` for a file of another count, or one that cannot be written.
    """
    from nqbench.workloads.counting import border

    jobs = border.jobs(n, DEPTH)
    edges = np.linspace(0, jobs.size // 3, min(CHUNKS, jobs.size // 3) + 1).astype(int).tolist()
    spans = list(pairwise(edges))
    code = hashlib.sha256(Path(border.__file__).read_bytes()).hexdigest()[:12]
    head: dict[str, int | str] = {"n": n, "depth": DEPTH, "chunks": len(spans), "code": code}
    weights = _read(log, head)
    resumed = len(weights)
    left = [number for number in range(len(spans)) if number not in weights]
    try:
        with log.open("a", encoding="ascii") as file:
            if not file.tell():
                _append(file, head)
            with ThreadPoolExecutor(threads or cpu_count()) as pool:
                running = {
                    pool.submit(border.weights_of_jobs, n, DEPTH, jobs, *spans[number]): number
                    for number in left
                }
                try:
                    for done in as_completed(running):
                        number = running[done]
                        weights[number] = int(done.result())
                        _append(file, {"chunk": number, "weights": weights[number]})
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
    except OSError as error:
        raise StudyError(f"--log {log} cannot be written: {error.strerror}") from error
    return Chunked(border.total(sum(weights.values())), len(spans), resumed)


def _append(file: IO[str], line: dict[str, int | str]) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()
    os.fsync(file.fileno())


def _read(log: Path, head: dict[str, int | str]) -> dict[int, int]:
    """Weights by chunk; a last line that was cut off is removed from the file."""
    try:
        text = log.read_text(encoding="ascii")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(log, len(whole))
        lines = [json.loads(line) for line in whole.splitlines()]
        found = {line["chunk"]: line["weights"] for line in lines[1:]}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StudyError(f"--log {log} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StudyError(f"--log {log} is no file of a count; name another file") from error
    if lines and lines[0] != head:
        raise StudyError(
            f"--log {log} is of another count ({lines[0]}, this one is {head}); name another file"
        )
    return found
