"""A worker process: one device, requests and answers as JSON lines over its pipes.

Started by the runner as ``python -m nqbench.measure.worker.main``. It ends when its standard input
closes or its parent dies, so that no worker outlives a run.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import sys
import threading
import time
from contextlib import closing
from typing import Any, BinaryIO, Final

from nqbench.errors import NqbenchError
from nqbench.system.crash import tell

PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
CHUNK: Final = 1 << 16
GRACE_S: Final = 2.0
"""How long a worker may go on after its input closed: enough to release a GPU, not to linger."""


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the parent dies (Linux; elsewhere the closed pipe does it).

    A launch that hangs inside a driver does not see a closed pipe.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def private_output() -> BinaryIO:
    """Take over standard output: later prints, of C libraries too, go to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(kept, "wb", buffering=0)


def follow_input(requests: queue.Queue[dict[str, Any] | None]) -> None:
    """Read requests until the input closes, then end the process even if it is busy.

    Unbuffered: a thread inside a buffered read makes Python abort when the process ends.
    """
    rest = b""
    while chunk := os.read(0, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            requests.put(json.loads(line))
    requests.put(None)
    time.sleep(GRACE_S)
    os._exit(1)


def serve(requests: queue.Queue[dict[str, Any] | None], output: BinaryIO) -> None:
    """Open the device that the first request names, then answer until there are no more.

    Without a device (``spec`` is null) the requests are kernels to compile.
    """

    def send(message: dict[str, Any]) -> None:
        output.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    first = requests.get()
    if first is None:
        return
    if first["spec"] is None:
        from nqbench.measure.worker.precompile import compile_point

        send({"hello": {"pid": os.getpid()}})
        while (request := requests.get()) is not None:
            send({"accepted": True})
            send({"done": compile_point(request)})
        return
    from nqbench.measure.worker.session import Session

    try:
        session = Session(first["spec"], lambda: send({"beat": True}))
        hello = session.hello()
    except NqbenchError as error:
        send({"error": {"type": type(error).__name__, "message": str(error)}})
        return
    with closing(session):
        send({"hello": hello})
        while (request := requests.get()) is not None:
            send({"accepted": True})
            send({"done": session.block(request)})


def main() -> None:
    """Entry point of the process."""
    die_with_parent()
    sys.excepthook = tell
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle
    output = private_output()
    requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=follow_input, args=(requests,), daemon=True).start()
    try:
        serve(requests, output)
    except BrokenPipeError:
        sys.exit(1)  # the runner is gone; nobody is left to tell


if __name__ == "__main__":
    main()
