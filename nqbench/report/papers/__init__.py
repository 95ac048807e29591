"""Papers reproduced: their tables and figures with fresh numbers, and verdicts on their claims.

``write`` writes everything for one paper; the other modules make one kind of thing each.
"""
