"""Fuse ``1 / (1 + exp(-x))`` into one ``Sigmoid``.

    before   x ─> Neg ─> Exp ─> Add(·, 1) ─> Div(1, ·) ─> y          after   x ─> Sigmoid ─> y

Where exp(-x) is infinite, both forms are 0. ONNX Runtime takes half of the time for Sigmoid.

The Sigmoid of ONNX Runtime has an absolute error of 1 ulp of 1. Below x = -16 (doubles: x = -36),
the result is so small that this error halves it or makes it 0.

Needs    (1) floats; (2) constants of exactly 1. Reciprocal may replace the Div, and ``-1 * x`` the
         Neg.
Keeps    (1) inner results with other readers; (2) bfloat16, for which runtimes have no kernel;
         (3) a result whose reader depends on its relative error (a logarithm, a divisor, a root,
         an output of the model), unless the target has a Sigmoid of its own.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.operators.onnxruntime.runtime_defects import reader_of_relative_error
from smelt.passes.base import rounding, rule_pass

KERNELS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)

_x, _one = var("x"), const(1.0, ulp=0)
_minus = one_of(op("Neg", _x), op("Mul", _x, const(-1.0, ulp=0), commutative=True))
_divisor = op("Add", op("Exp", _minus), _one, commutative=True)


@rule(one_of(op("Div", _one, _divisor), op("Reciprocal", _divisor)))  # needs 2, keeps 1
def sigmoid(m: Match, b: Builder) -> Replacement:
    """Replace ``1 / (1 + exp(-x))`` by Sigmoid."""
    if m["x"].dtype not in KERNELS:  # needs 1, keeps 2
        return Miss(f"Sigmoid of {m['x'].dtype} has no kernel")
    reader = reader_of_relative_error("Sigmoid", m.root.outputs[0]) if b.kernels is None else ""
    if reader:  # keeps 3
        return Miss(f"{reader} reads small results, which ONNX Runtime's Sigmoid rounds to 0")
    return b.op("Sigmoid", m["x"])


fuse_sigmoid = rule_pass(
    "fuse_sigmoid",
    __doc__,
    [sigmoid],
    exactness=rounding(4, "in ulp of 1: a small result may become 0"),
    before=("fuse_swish",),
)
