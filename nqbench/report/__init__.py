"""Tables, figures and pages made from runs. Knows records, not devices.

The names below are loaded on first use: drawing needs matplotlib, which is slow to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nqbench.report.writer import Report, default_out, write_report

__all__ = ["Report", "default_out", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from nqbench.report import writer

        return getattr(writer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
