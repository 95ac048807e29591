"""CUDA without a GPU: compiles CUDA C++ to PTX and the PTX to native code that runs whole warps,
counts what a profiler would, and finds races and stray accesses.

The simulator stands on its own: it knows plans, the compiler and nothing of studies or records.
README.md beside this file says how it works and what its counters mean.

    with prepare(simulation("h100"), plan) as loaded:
        print(loaded.launch().counters["bank_conflicts"], loaded.fetch()["out"])
"""
