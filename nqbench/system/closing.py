"""The ``with`` statement for whatever has a ``close``."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Closes itself at the end of a ``with`` block, also after an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release what is held."""
        raise NotImplementedError
