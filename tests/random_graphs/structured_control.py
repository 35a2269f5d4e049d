"""A part of a model in a branch or a loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto, helper
from random_graphs.structured_builder import Builder


def around(b: Builder, x: str, part: Callable[[str], str]) -> str:
    """``part`` of ``x`` in an If or a Loop; ``part`` keeps the shape."""
    if b.chance(0.5):
        return _if(b, x, part)
    return _loop(b, x, part)


def _if(b: Builder, x: str, part: Callable[[str], str]) -> str:
    form = b.rng.randrange(3)
    if form == 0:
        condition = b.op("Greater", b.scalar(b.dim(x, 0)), b.int(1))
    elif form == 1:
        condition = b.input(b.name("flag"), [], TensorProto.BOOL)
    else:
        condition = b.const(np.array(b.chance(0.5)))
    other = b.op("Neg", x)
    branches = [
        b.inner(lambda: [part(x)]),
        b.inner(lambda: [other if b.chance(0.3) else part(b.op("Add", x, other))]),
    ]
    b.rng.shuffle(branches)
    return b.op("If", condition, then_branch=branches[0], else_branch=branches[1])


def _loop(b: Builder, x: str, part: Callable[[str], str]) -> str:
    least = b.pick(0, 1, 2)
    scans = least > 0 and b.chance(0.4)  # after no rounds, ONNX Runtime gives the stack one dim
    trips = b.int(least) if b.chance(0.6) else b.scalar(b.dim(x, 0))
    i, go, state = b.name("i"), b.name("go"), b.name("state")
    inputs = [
        helper.make_tensor_value_info(i, TensorProto.INT64, []),
        helper.make_tensor_value_info(go, TensorProto.BOOL, []),
        helper.make_tensor_value_info(state, b.type, None),
    ]

    def body() -> list[str]:
        y = part(state)
        if b.chance(0.4):
            y = b.op("Add", y, b.op("Cast", i, to=b.type))
        y = b.op("Tanh", y)
        return [go, y, *([b.mean(y, [-1])] if scans else [])]

    graph = b.inner(body, inputs)
    results = b.op_n("Loop", 1 + scans, trips, "", x, body=graph)
    b.outputs += results[1:]
    return results[0]
