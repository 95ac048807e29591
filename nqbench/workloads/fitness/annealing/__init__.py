"""Searches for a valid board by simulated annealing."""
