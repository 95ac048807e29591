"""Threads of one evaluation: started together, all ended before it returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from nqbench.errors import DeviceError


def run_in_threads(work: Callable[[int], object], numbers: Iterable[int]) -> Callable[[], None]:
    """Start a thread for each number that calls ``work(number)``; returns what joins them.

    If the system refuses a thread, the earlier ones are joined and ``DeviceError`` says how many
    there were.
    """
    crew: list[threading.Thread] = []

    def join() -> None:
        for thread in crew:
            thread.join()

    wanted = list(numbers)
    for number in wanted:
        thread = threading.Thread(target=work, args=(number,))
        try:
            thread.start()
        except RuntimeError as error:
            join()
            raise DeviceError(
                f"the system gave this process only {len(crew)} of {len(wanted)} threads ({error});"
                " use fewer threads, or raise its limit (ulimit -u, or that of the container)"
            ) from error
        crew.append(thread)
    return join
