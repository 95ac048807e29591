"""Workloads that a study brings along: a kernel of the user's own, described in YAML.

This package is no workload itself: one is made for each study with a block ``kernel``.
"""
