"""Every node test of ONNX whose operators can be lowered passes on the host, or is refused."""

from __future__ import annotations

import warnings
from functools import cache, partial

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase as Case

import smelt
from smelt.errors import SmeltError
from smelt.program.lower import lowered_operators

LEAST_PASSED = 1475
"""Cases that pass with onnx 1.23, compiled as users do; fewer would mean that support was lost. The phases
of the target alone pass 1,461: passes raise old opsets, fold sizes, and expand DynamicQuantizeLinear."""

ROUNDING = {"bfloat16": 2**-6, "float16": 2**-9}
"""Relative error of chains of operations that round to 16 bits; 1e-3, as in ONNX, for others."""

OTHERWISE = frozenset(
    f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")
)
"""Cases in which ONNX Runtime and PyTorch differ from ONNX's reference: corners of a Resize whose
scales leave a fraction of a size are aligned to the whole size."""

REFUSED_BY_A_RUN = "E670"
"""The code of a run that a requirement of the model refuses, such as a Dropout that must not draw."""


@cache
def cases() -> tuple[Case, ...]:
    known = {*lowered_operators(), "Constant"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    found = [case for case in found if case.name not in OTHERWISE]
    return tuple(case for case in found if {n.op_type for n in case.model.graph.node} <= known)


def array(value: object) -> np.ndarray:
    return (
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    )


def with_fixed_operands(model: ir.Model, inputs: list[object]) -> list[object]:
    """Make constants of all inputs of rank 0 and 1 after the first; return the other ``inputs``."""
    kept = []
    for position, (value, given) in enumerate(zip(list(model.graph.inputs), inputs, strict=True)):
        if position and not isinstance(given, list | None) and array(given).ndim <= 1:
            value.const_value = ir.Tensor(array(given))
            model.graph.inputs.remove(value)
            model.graph.register_initializer(value)
        else:
            kept.append(given)
    return kept


def check(artifact, inputs: list[object], outputs: list[object]) -> None:
    results = artifact(*(array(value) for value in inputs))
    for result, wanted in zip(results, map(array, outputs), strict=True):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        rtol = 0.0 if wanted.dtype.kind in "biu" else ROUNDING.get(str(wanted.dtype), 1e-3)
        np.testing.assert_allclose(
            result.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=rtol / 100
        )


def outcome(case: Case, compile_host) -> str:
    """Return ``passed``, or the code of the refusal, of a case; if it is refused, small operands
    become constants.
    """
    codes = []
    for fix in (False, True):
        model = ir.from_proto(case.model)
        data = [(list(inputs), list(outputs)) for inputs, outputs in case.data_sets]
        if fix and len(data) == 1:
            data = [(with_fixed_operands(model, data[0][0]), data[0][1])]
        try:
            artifact = compile_host(model)
        except SmeltError as error:
            codes.append(error.code)
            continue
        try:
            for inputs, outputs in data:
                check(artifact, inputs, outputs)
        except SmeltError as error:
            if error.code != REFUSED_BY_A_RUN:
                raise
            codes.append(error.code)
            continue
        return "passed"
    return codes[-1]


@pytest.mark.slow
def test_node_cases() -> None:
    """One test for all cases, because making the cases takes longer than running them.

    Only by NumPy: compiling each would take more than ten minutes.
    """
    compile_host = partial(smelt.compile, target="host", engine="numpy")
    outcomes: dict[str, str] = {}
    failures: dict[str, str] = {}
    for case in cases():
        try:
            outcomes[case.name] = outcome(case, compile_host)
        except (AssertionError, SmeltError) as error:
            failures[case.name] = str(error)
    assert not failures
    refused = set(outcomes.values()) - {"passed"}
    assert refused <= {"E201", "E202", "E402", "E411", REFUSED_BY_A_RUN}
    assert sum(value == "passed" for value in outcomes.values()) >= LEAST_PASSED


@pytest.mark.parametrize(
    "op_type", ["Relu", "Gemm", "Conv", "Softmax", "Gather", "ReduceMean", "Pad"]
)
def test_common_operators_are_among_them(op_type: str) -> None:
    assert op_type in lowered_operators()
