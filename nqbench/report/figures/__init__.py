"""Figures of runs: one kind per file, and the style that all share."""
