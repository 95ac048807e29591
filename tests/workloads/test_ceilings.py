"""The ceilings' kernels compute what they should."""

from __future__ import annotations

import pytest

from nqbench.point import Level
from nqbench.workloads.ceilings import OPERATIONS, WORKLOAD
from tests.workloads.running import SIM, run


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("n", [4, 64, 1024])
def test_answers(operation: str, n: int) -> None:
    steps = 0 if operation == "copy" else 37
    given: dict[str, Level] = {"n": n, "operation": operation, "steps": steps, "block_size": 96}
    assert run(WORKLOAD, SIM, given).answer is not None


def test_every_step_matters() -> None:
    for operation in OPERATIONS[1:]:
        expected = [
            WORKLOAD.expected({"n": 4096, "operation": operation, "steps": k}) for k in (36, 37, 38)
        ]
        assert len(set(expected)) == 3, operation
