"""Every lowering computes what ONNX's node tests say, on the host by NumPy and without passes.

The cases that write an operator as its function are left out: they lower the same primitives again.
What the default pipeline makes of all cases is tried by the slow tests of ``tests/targets/host``.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from targets.host.test_onnx_nodes import cases, outcome

import smelt
from smelt.errors import SmeltError

RANDOM = "test_training_dropout"
"""Name of the cases whose run drops random elements, which ends with an error."""

PASSED = 1073
"""Cases that pass with onnx 1.23; fewer would mean that support was lost."""


def test_lowered_operators_compute_what_onnx_says() -> None:
    compile_host = partial(smelt.compile, target="host", engine="numpy", pipeline="")
    outcomes, failures = Counter[str](), {}
    for case in cases():
        if not case.name.endswith("_expanded") and not case.name.startswith(RANDOM):
            try:
                outcomes[outcome(case, compile_host)] += 1
            except (AssertionError, SmeltError) as error:
                failures[case.name] = str(error)
    assert not failures
    assert outcomes.keys() <= {"passed", "E201", "E402"}
    assert outcomes["passed"] >= PASSED
