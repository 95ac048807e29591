"""The smallest study that still has sizes and rounds, and the test device that runs it."""

from __future__ import annotations

STUDY = """\
name: tiny
workload: counting
n: [6, 7, 8]
fixed: {memory: shared, depth: 2}
measure: {rounds: 1, budget: 1s}
"""
FAKE = "fake:noise=0.001,seed=3"
