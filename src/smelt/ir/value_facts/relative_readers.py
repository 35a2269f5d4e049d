"""Tells whether a consumer depends on the relative error of a value, or on its absolute error only.

A kernel may have a small absolute error and still be off by half of a small result, or give 0. A
sum or a product of matrices is not affected. A logarithm is, and so are a divisor, a power below 1
and the outputs of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.ir.opset import MOVEMENT


class Form(IntEnum):
    """How a value derives from the original; consumers of a higher form depend on the error less.

    - ``ITSELF``: the value, scaled, moved or clipped; a graph output shows its error.
    - ``TERM``: something was added or multiplied; a logarithm may show the error.
    - ``SUM``: the sum of a row of values; a logarithm or a divisor may show the error.
    """

    ITSELF = 0
    TERM = 1
    SUM = 2


DIVIDING = frozenset({"Log", "Reciprocal", "Sqrt", "ReduceLogSum"})
"""Operators whose result has at least half of the relative error of their operand."""

TESTS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
TINY = 1e-4
"""A comparison with a smaller number notices an error of one ulp of 1."""

KEEPING = MOVEMENT | {
    *("Abs", "Cast", "CastLike", "Clip", "Compress", "Dropout", "Max", "Min", "Neg", "Relu"),
    *("ReduceMax", "ReduceMin", "ReduceProd", "TopK", "Trilu"),
}
"""Operators that pass on an element or its magnitude unchanged."""

ROW_SUMS = frozenset({"Einsum", "Gemm", "MatMul", "ReduceL1", "ReduceMean", "ReduceSum"})
"""Operators that sum a row of elements, possibly with weights of one sign."""

OPAQUE = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators whose bodies are not followed: one that takes the value itself counts as a consumer."""

MOST = 400
"""Maximum number of values that are followed; beyond it, the relative error counts as used."""


def reads_relative_error(value: ir.Value) -> str:
    """Return the operator, or ``"output"``, that depends on the relative error of ``value``.

    Empty if every consumer tolerates a small absolute error.
    """
    pending = [(value, Form.ITSELF)]
    forms: dict[ir.Value, Form] = {value: Form.ITSELF}
    while pending:
        current, form = pending.pop()
        if form == Form.ITSELF and current.is_graph_output():
            return "output"
        for node, index in current.uses():
            if _depends_on(node, index, form):
                return node.op_type
            for result, result_form in _affected_results(node, index, form):
                if result not in forms or result_form < forms[result]:
                    forms[result] = result_form
                    pending.append((result, result_form))
        if len(forms) > MOST:
            return "too many readers to examine"
    return ""


def _depends_on(node: ir.Node, index: int, form: Form) -> bool:
    """True if ``node`` shows the relative error of its input ``index``, which has this ``form``."""
    if node.domain or node.op_type in OPAQUE:
        return form == Form.ITSELF and _is_opaque(node)
    if node.op_type in DIVIDING:
        return True
    if node.op_type == "Div":
        return index == 1
    if form == Form.SUM:
        return False
    if node.op_type == "Pow":
        return index == 0 and not _is_large_power(node)
    if form == Form.ITSELF and node.op_type in TESTS:
        other = _constant(node, 1 - index)
        return other is not None and bool(np.any(np.abs(other.numpy()) < TINY))
    return False


def _is_opaque(node: ir.Node) -> bool:
    """True for control flow, and for a call of a function of the model."""
    return not node.domain or not node.domain.startswith(("smelt", "com.microsoft"))


def _affected_results(node: ir.Node, index: int, form: Form) -> Iterator[tuple[ir.Value, Form]]:
    """Yield the results of ``node`` that get the relative error of its input ``index``.

    Each comes with its form.
    """
    if node.domain and (node.domain, node.op_type) != ("smelt", "DotGeneral"):
        return
    after = _form_after(node, index, form)
    if after is not None:
        yield from ((output, after) for output in node.outputs)


def _form_after(node: ir.Node, index: int, form: Form) -> Form | None:
    """Return the form of the result of ``node`` if its input ``index`` has ``form``.

    None if the relative error does not reach the result.
    """
    op_type = node.op_type
    if op_type in KEEPING:
        return form if index == 0 or op_type in ("Concat", "Max", "Min") else None
    if op_type in ("Where", "ScatterElements", "ScatterND"):
        return form if index != (0 if op_type == "Where" else 1) else None
    scales = op_type == "Mul" and _constant(node, 1 - index) is not None
    if op_type == "Div" or scales:
        # The relative error remains: a small divisor makes a small dividend large.
        return form
    if form == Form.SUM:
        return form if op_type == "Add" and _constant(node, 1 - index) is not None else None
    if op_type in ROW_SUMS or op_type == "DotGeneral":
        return Form.SUM if form == Form.ITSELF else None
    combines = op_type in ("Add", "Sub", "Mul", "Sum", "Mean", "Pow")
    return Form.TERM if combines and not (op_type == "Pow" and index == 1) else None


def _constant(node: ir.Node, index: int) -> ir.TensorProtocol | None:
    """Return input ``index`` of ``node`` as a tensor; None if it is not constant."""
    value = node.inputs[index]
    return None if value is None else tensor_of(value)


def _is_large_power(node: ir.Node) -> bool:
    """True if the exponent is a constant of at least 1: small bases give small powers."""
    exponent = _constant(node, 1)
    return exponent is not None and bool(np.all(exponent.numpy() >= 1))
