"""A worker process: one device, and a connection to the runner for messages.

Started by the runner as ``python -m nqbench.measure.worker.main FILE_DESCRIPTOR``. It ends when
that connection closes or its parent dies, so that no worker outlives a run.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from typing import Final

from nqbench.errors import NqbenchError
from nqbench.measure.worker import messages
from nqbench.system.crash import write_crash
from nqbench.workloads import register

PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
GRACE_S: Final = 2.0
"""How long a worker may run after its connection closed: enough to release a GPU."""


def follow(runner: Connection, requests: queue.Queue[messages.Message | None]) -> None:
    """Read requests until the connection closes, then end the process even if it is busy."""
    with suppress(EOFError, ConnectionError):
        while True:
            requests.put(runner.recv())
    requests.put(None)
    time.sleep(GRACE_S)
    os._exit(1)


def serve(
    requests: queue.Queue[messages.Message | None], send: Callable[[messages.Message], None]
) -> None:
    """Open the device that the first message names, then answer requests until there are none."""
    first = requests.get()
    if not isinstance(first, messages.Open):
        return
    try:
        for workload in first.workloads:
            register(workload)
    except NqbenchError as error:
        send(messages.Refused(type(error).__name__, str(error)))
        return
    if first.spec is None:
        from nqbench.measure.launch import compile_point

        send(messages.Ready())
        while isinstance(request := requests.get(), messages.PrecompileRequest):
            send(messages.Accepted())
            send(messages.Done(compile_point(request.point, request.facts)))
        return
    from nqbench.measure.worker.session import Session

    try:
        session = Session(first.spec, lambda: send(messages.Beat()))
        hello = session.hello()
    except NqbenchError as error:
        send(messages.Refused(type(error).__name__, str(error)))
        return
    with closing(session):
        send(messages.Ready(hello))
        while isinstance(request := requests.get(), messages.MeasureRequest):
            send(messages.Accepted())
            send(messages.Done(session.measure(request)))


def main(file_descriptor: int) -> None:
    """Entry point of the process."""
    # Linux kills it when the parent dies: a launch that hangs in a driver sees no closed pipe.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.excepthook = write_crash
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle
    os.set_inheritable(file_descriptor, False)
    runner = Connection(file_descriptor)
    requests: queue.Queue[messages.Message | None] = queue.Queue()
    threading.Thread(target=follow, args=(runner, requests), daemon=True).start()
    try:
        serve(requests, runner.send)
    except ConnectionError:
        sys.exit(1)  # the runner is gone


if __name__ == "__main__":
    main(int(sys.argv[1]))
