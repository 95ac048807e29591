"""Schemes that evaluate boards on the CPU."""
