"""What every test needs of its surroundings."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let programs that tests start see Ctrl-C: what a shell starts in the background ignores it.

    A process inherits that, and so do its children; a test that sends SIGINT would fail for it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
