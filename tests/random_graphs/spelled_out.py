"""Moves that spell out an activation, a loss or a norm of the table of formulas, of wide operands."""

from __future__ import annotations

import re

import onnx_ir as ir
from formulas.table import CONSTANTS, ELEMENTWISE, GAINS, ROWS
from random_graphs.draft import FLOAT, Draft, Move, NoMove, dims, needs_some, static

NODE = re.compile(r"(\w+) = (\w+)\(([^)]*)\)")
FORMULAS = [
    *(formula.body for formula in ELEMENTWISE.values() if "smelt." not in formula.body),
    *(formula.body for formula in ROWS.values()),
]
SCALES = (1.0, 1.0, 10.0, 100.0, 1e4, 1e30, 1e-30)
"""What the operand is multiplied by, so that tails and overflows are drawn, too."""


def formula(d: Draft) -> None:
    """One formula of an operand times a number; a constant is another one at times."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    static(x, -1)
    needs_some(x)
    scale = d.rng.choice(SCALES)
    x = x if scale == 1 else d.op("Mul", x, d.const(scale))
    known: dict[str, ir.Value] = {"x": x, "t": x, "l": x, "axis": d.ints(-1)}
    if d.chance(0.5):
        known["t"] = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x))
    body = d.rng.choice(FORMULAS)
    if "gains" in body:
        known["gains"] = d.const(GAINS[: static(x, -1)])
    for name, op_type, operands in NODE.findall(body):
        inputs = [_operand(d, known, operand) for operand in operands.split(", ")]
        if op_type.startswith("Reduce"):
            if "axis" in operands and known["axis"] in inputs:
                known[name] = d.reduce(op_type, inputs[0], [-1], keepdims=1)
                continue
            raise NoMove
        known[name] = d.op(op_type, *inputs)


def _operand(d: Draft, known: dict[str, ir.Value], name: str) -> ir.Value:
    """The value called ``name``, or a constant, which is off by a little at times."""
    if name not in known:
        known[name] = d.const(CONSTANTS[name] * (1.001 if d.chance(0.02) else 1.0))
    return known[name]


MOVES: list[Move] = [formula]
