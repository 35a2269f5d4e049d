"""Moves that compute element by element: with constants that look neutral and are not, too."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from random_graphs.draft import FLOAT, INT, Draft, Move, NoMove, dims

UNARY = [
    "Abs",
    "Ceil",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LeakyRelu",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
    "Gelu",
]
INTEGER_UNARY = ["Abs", "Neg", "Sign", "Identity"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
COMPARISON = ["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]
NEUTRAL = {
    "Add": [0.0, -0.0, 1e-12, 1e-3],
    "Sub": [0.0, -0.0, 1e-12],
    "Mul": [1.0, 1.0000001, 0.0, -1.0, 0.99],
    "Div": [1.0, 1.0000001, 2.0, 0.3, 8.0],
    "Pow": [1.0, 2.0, 3.0, 0.5],
    "Max": [0.0, -0.0, 1e-12],
    "Min": [0.0, 3.0],
}
TYPES = [
    ir.DataType.FLOAT16,
    ir.DataType.DOUBLE,
    ir.DataType.INT32,
    ir.DataType.INT64,
    ir.DataType.INT8,
    ir.DataType.BOOL,
]


def unary(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype in (FLOAT, INT))
    d.op(d.rng.choice(UNARY if x.dtype == FLOAT else INTEGER_UNARY), x)


def binary(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype in (FLOAT, INT))
    y = d.pick(lambda v: v.dtype == x.dtype and (dims(v) == dims(x) or not dims(v)))
    d.op(d.rng.choice(BINARY), *d.rng.sample([x, y], 2))


def with_vector(d: Draft) -> None:
    """A constant along one axis, of higher rank at times, on either side."""
    x = d.float()
    rank = len(dims(x))
    axis = d.rng.randrange(rank) if rank else 0
    length = dims(x)[axis] if rank else 1
    if not isinstance(length, int):
        length = 1
    shape = [length if i == axis else 1 for i in range(rank)]
    if d.chance(0.2):
        shape = [1, *shape]
    elif d.chance(0.5):
        shape = shape[axis:]
    order = d.rng.sample([x, d.normal(*shape)], 2)
    d.op(d.rng.choice(["Add", "Sub", "Mul", "Div", "Max", "Min"]), *order)


def neutral(d: Draft) -> None:
    x = d.float()
    kind = d.rng.choice(list(NEUTRAL))
    number = d.rng.choice(NEUTRAL[kind])
    rank = len(dims(x))
    shape = d.rng.choice([(), (1,), (1,) * rank, (1,) * (rank + 1), (2, *(1,) * rank)])
    held = d.generator().normal(size=shape) * 0 + number
    last = dims(x)[-1] if rank else 1
    if d.chance(0.2) and isinstance(last, int) and last > 1:
        held = np.resize([number, 0.5], last)
    constant = d.const(held)
    order = [x, constant] if kind in ("Sub", "Div", "Pow") or d.chance(0.5) else [constant, x]
    if kind in ("Sub", "Div") and d.chance(0.2):
        order.reverse()
    d.op(kind, *order)


def integer(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == INT)
    kind = d.rng.choice(["Add", "Sub", "Mul", "Div", "Mod"])
    number = d.rng.choice([1, 2, 3, -2] if kind in ("Div", "Mod") else [0, 1, 2, -1])
    d.op(kind, x, d.const(number, INT))


def choose(d: Draft) -> None:
    """A comparison, logic over it, and a Where."""
    x = d.float()
    y = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x))
    test = d.op(d.rng.choice(COMPARISON), x, d.rng.choice([y, d.const(0.0)]))
    if d.chance(0.3):
        test = d.op("Not", test)
    if d.chance(0.3):
        other = d.op("Greater", y, d.const(0.5))
        test = d.op(d.rng.choice(["And", "Or", "Xor"]), test, other)
    if d.chance(0.3):
        test = d.op("And", test, d.const(d.rng.choice([True, False]), ir.DataType.BOOL))
    d.op("Where", test, *d.rng.sample([x, y], 2))


def constant_choice(d: Draft) -> None:
    """A Where whose condition is known; it may widen its operands."""
    x = d.float()
    y = d.pick(lambda v: v.dtype == FLOAT and (dims(v) == dims(x) or not dims(v)))
    shape = d.rng.choice([(), (1,), (1,) * (len(dims(x)) + 1), (2, *(1,) * len(dims(x)))])
    last = dims(x)[-1] if dims(x) else 1
    if d.chance(0.3) and isinstance(last, int):
        shape = (last,)
    held = d.generator().integers(0, 2) if d.chance(0.6) else d.generator().integers(0, 2, shape)
    condition = d.const(d.generator().normal(size=shape) * 0 + held, ir.DataType.BOOL)
    d.op("Where", condition, *d.rng.sample([x, y], 2))


def cast_chain(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype in (FLOAT, INT))
    start = x.dtype
    bounded = d.op("Clip", x, d.const(-9, start), d.const(9, start)) if start else x
    if start == FLOAT:
        bounded = d.op("Round", bounded)
    for _ in range(d.rng.randint(1, 3)):
        bounded = d.op("Cast", bounded, to=int(d.rng.choice(TYPES)))
    d.op("Cast", bounded, to=int(d.rng.choice([FLOAT, INT])))


def cast_exact(d: Draft) -> None:
    """Large integers through a float type and back."""
    x = d.pick(lambda v: v.dtype == INT)
    large = d.op("Mul", x, d.const(d.rng.choice([1, 2**21 + 1, 2**30 + 1]), INT))
    through = d.op("Cast", large, to=int(d.rng.choice([FLOAT, ir.DataType.DOUBLE, INT])))
    d.op("Cast", through, to=int(INT))


def same_twice(d: Draft) -> None:
    """The same node twice, or idempotent ones in a row."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    if d.chance(0.3):
        kind, name = d.rng.choice([("LeakyRelu", "alpha"), ("Elu", "alpha"), ("Softmax", "axis")])
        numbers = [-1, 0] if name == "axis" else [0.1, 0.3]
        parts = [d.op(kind, x, **{name: d.rng.choice(numbers)}) for _ in "ab"]
        d.op("Concat", *parts, axis=0)
        return
    kind = d.rng.choice(["Relu", "Abs", "Ceil", "Floor", "Sign", "Round", "Neg", "Tanh"])
    y = d.op(kind, x)
    d.op(kind, d.rng.choice([x, y]))


def operands_exchanged(d: Draft) -> None:
    """The same operator over the same two operands, in either order, both results read."""
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    y = d.pick(lambda v: v.dtype == FLOAT and dims(v) == dims(x) and v is not x)
    kind = d.rng.choice(["Sub", "Sub", "Mul", "Add", "Max"])
    d.op("Concat", d.op(kind, x, y), d.op(kind, *d.rng.sample([x, y], 2)), axis=0)


def clamp(d: Draft) -> None:
    x = d.float()
    low, high = d.const(d.rng.uniform(-1, 0.2)), d.const(d.rng.uniform(-0.2, 1))
    kind = d.rng.randrange(4)
    if kind == 0:
        bounds = [d.const(d.rng.choice(pair)) for pair in ((-0.5, 0.6), (0.5, -0.6, 2.0))]
        d.op("Clip", d.op("Clip", x, low, high), *bounds)
    elif kind == 1:
        d.op("Min", d.op("Max", x, low), high)
    elif kind == 2:
        d.op("Relu", d.op("Clip", x, low, high))
    else:
        d.op("Clip", d.op("Relu", x), low, high)


def wide_float(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == ir.DataType.DOUBLE)
    constant = d.const(d.rng.choice([0.0, 1.0, 1.0 + 1e-12, 0.5]), ir.DataType.DOUBLE)
    d.op(d.rng.choice(["Add", "Mul", "Sub", "Div"]) if constant else "Neg", x, constant)


def needs_float_vector(d: Draft) -> ir.Value:
    """A float value with a static last axis of 2 or more; raises NoMove."""
    value = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)) and isinstance(dims(v)[-1], int))
    if dims(value)[-1] == 1:
        raise NoMove
    return value


MOVES: list[Move] = [
    *(unary, unary, unary, binary, binary, with_vector, with_vector, neutral, neutral, neutral),
    *(integer, choose, constant_choice, cast_chain, cast_exact, clamp, wide_float),
    *(same_twice, operands_exchanged),
]
