"""Axes of the papers' figures."""

from nqbench.report.figures.log_axis import powers_axis, sizes_axis

__all__ = ["powers_axis", "sizes_axis"]
