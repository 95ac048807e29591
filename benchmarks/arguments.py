"""What the benchmarks' command lines take."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A whole number from 1: none of anything measures nothing, and would pass for a success."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
