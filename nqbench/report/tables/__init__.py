"""Tables of runs."""
