"""Transformer blocks: norms, masks, shared keys, caches, rotary embeddings and activations."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from random_graphs.structured_builder import Builder
from random_graphs.structured_control import around
from random_graphs.structured_masks import masked, softmax


def norm(b: Builder, x: str, size: int) -> str:
    """LayerNorm or RMSNorm, as an operator or spelled out."""
    if b.opset >= 17 and b.chance(0.3):
        scale, bias = b.weight(size), [b.weight(size)] if b.chance(0.7) else []
        return b.op("LayerNormalization", x, scale, *bias, axis=-1, epsilon=1e-5)
    wide = b.type == TensorProto.FLOAT16
    y = b.op("Cast", x, to=TensorProto.FLOAT) if wide else x
    constant = (lambda v: b.const(np.float32(v))) if wide else b.number
    if b.chance(0.5):
        y = b.op("Sub", y, b.mean(y, [-1]))
    square = b.op("Pow", y, constant(2.0)) if b.chance(0.5) else b.op("Mul", y, y)
    root = b.op("Sqrt", b.op("Add", b.mean(square, [-1]), constant(1e-5)))
    form = b.rng.randrange(3)
    if form == 0:
        y = b.op("Div", y, root)
    elif form == 1:
        y = b.op("Mul", y, b.op("Reciprocal", root))
    else:
        y = b.op("Mul", b.op("Div", constant(1.0), root), y)
    y = b.op("Cast", y, to=b.type) if wide else y
    if b.chance(0.9):
        y = b.op("Mul", *b.rng.sample([y, b.weight(size)], 2))
    return b.op("Add", y, b.weight(size)) if b.chance(0.5) else y


def linear(b: Builder, x: str, inner: int, outer: int) -> str:
    if b.chance(0.15):
        w = b.op("Transpose", b.weight(outer, inner, scale=inner**-0.5), perm=[1, 0])
    else:
        w = b.weight(inner, outer, scale=inner**-0.5)
    y = b.op("MatMul", x, w)
    if b.chance(0.6):
        y = b.op("Add", *b.rng.sample([y, b.weight(outer, scale=0.3)], 2))
    return y


def activation(b: Builder, x: str) -> str:
    """An activation, most of them spelled out."""
    c = b.number
    form = b.rng.randrange(8)
    if form == 0:
        e = b.op("Add", b.op("Erf", b.op("Div", x, c(2**0.5))), c(1.0))
        if b.chance(0.5):
            return b.op("Mul", b.op("Mul", x, e), c(0.5))
        return b.op("Mul", x, b.op("Mul", c(0.5), e))
    if form == 1:
        cube = b.op("Pow", x, c(3.0)) if b.chance(0.5) else b.op("Mul", x, b.op("Mul", x, x))
        inner = b.op("Add", x, b.op("Mul", cube, c(0.044715)))
        t = b.op("Add", b.op("Tanh", b.op("Mul", inner, c((2 / np.pi) ** 0.5))), c(1.0))
        return b.op("Mul", b.op("Mul", x, c(0.5)), t)
    if form == 2:
        return b.op("Mul", *b.rng.sample([x, b.op("Sigmoid", x)], 2))
    if form == 3:
        return b.op("Mul", x, b.op("Sigmoid", b.op("Mul", x, c(1.702))))
    if form == 4:
        return b.op("Div", x, b.op("Add", b.op("Exp", b.op("Neg", x)), c(1.0)))
    if form == 5:
        return b.op("Mul", x, b.op("Tanh", b.op("Softplus", x)))
    if form == 6:
        return b.op("Mul", b.op("Relu", x), b.op("Relu", x))
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=b.pick("none", "tanh"))
    return b.op("Relu", x)


def mlp(b: Builder, x: str, size: int) -> str:
    wide = b.pick(5, 8)
    h = activation(b, linear(b, x, size, wide))
    if b.chance(0.4):
        h = b.op("Mul", h, linear(b, x, size, wide))
    return linear(b, h, wide, size)


def split_heads(b: Builder, x: str, heads: int, size: int) -> str:
    if b.chance(0.5):
        shape = b.ints(*b.pick((0, 0, heads, size), (0, -1, heads, size)))
    else:
        shape = b.shape(b.dim(x, 0), b.dim(x, 1), heads, b.pick(size, -1))
    return b.op("Transpose", b.op("Reshape", x, shape), perm=[0, 2, 1, 3])


def repeat_heads(b: Builder, x: str, times: int, heads: int, size: int) -> str:
    """Heads of keys or values, each for ``times`` heads of queries."""
    if times == 1 or (heads == 1 and b.chance(0.5)):
        return x
    if b.chance(0.2):
        return b.op("Gather", x, b.ints(*np.repeat(range(heads), times).tolist()), axis=1)
    y = b.op("Unsqueeze", x, b.ints(2))
    n, t = b.dim(x, 0), b.dim(x, 2)
    if b.chance(0.3):
        y = b.op("Tile", y, b.ints(1, 1, times, 1, 1))
    else:
        y = b.op("Expand", y, b.shape(n, heads, times, t, size))
    return b.op("Reshape", y, b.shape(n, heads * times, t, b.pick(size, -1)))


def rotary(b: Builder, x: str, size: int, cos: str, sin: str, twisted: bool) -> str:
    """Rotary embedding of halves, or of neighbours if ``twisted``."""
    half = size // 2
    if twisted:
        pairs = b.op("Reshape", x, b.ints(0, 0, 0, half, 2))
        first, second = (
            b.op("Gather", pairs, b.int(0), axis=-1),
            b.op("Gather", pairs, b.int(1), axis=-1),
        )
    elif b.chance(0.5):
        first, second = b.op_n("Split", 2, x, b.ints(half, half), axis=-1)
    else:
        first = b.op("Slice", x, b.ints(0), b.ints(half), b.ints(3))
        second = b.op("Slice", x, b.ints(half), b.ints(2**62), b.ints(-1))
    if twisted or b.chance(0.3):
        left = b.op("Sub", b.op("Mul", first, cos), b.op("Mul", second, sin))
        right = b.op("Add", b.op("Mul", second, cos), b.op("Mul", first, sin))
        if not twisted:
            return b.op("Concat", left, right, axis=-1)
        both = [b.op("Unsqueeze", each, b.ints(-1)) for each in (left, right)]
        return b.op("Reshape", b.op("Concat", *both, axis=-1), b.ints(0, 0, 0, size))
    turned = b.op("Concat", b.op("Neg", second), first, axis=-1)
    cos, sin = (b.op("Concat", each, each, axis=-1) for each in (cos, sin))
    return b.op("Add", b.op("Mul", x, cos), b.op("Mul", turned, sin))


def angles(b: Builder, x: str, size: int, past: str | None) -> tuple[str, str]:
    """Cosines and sines of the positions of ``x`` [N, M, ...], for [N, heads, M, size / 2]."""
    m = b.dim(x, 1)
    if past is None:
        positions = b.op("Range", b.int(0), b.scalar(m), b.int(1))
    else:
        start = b.scalar(b.dim(past, 2))
        positions = b.op("Range", start, b.op("Add", start, b.scalar(m)), b.int(1))
    frequencies = 10.0 ** -np.arange(size // 2)
    if b.chance(0.4):
        table = np.arange(16)[:, None] * frequencies
        return tuple(
            b.op("Gather", b.const(f(table).astype(b.dtype)), positions) for f in (np.cos, np.sin)
        )
    column = b.op("Unsqueeze", b.op("Cast", positions, to=TensorProto.FLOAT), b.ints(1))
    angle = b.op("Mul", column, b.const(frequencies.astype(np.float32)[None]))
    return tuple(b.op("Cast", b.op(f, angle), to=b.type) for f in ("Cos", "Sin"))


def attention(b: Builder, x: str, size: int, caches: bool) -> str:
    """Attention of x [N, M, size], with caches of keys and values as inputs and outputs."""
    shared, times, width = b.pick(1, 2, 3), b.pick(1, 1, 2, 3), b.pick(2, 4, 6)
    heads = shared * times
    q = split_heads(b, linear(b, x, size, heads * width), heads, width)
    k = split_heads(b, linear(b, x, size, shared * width), shared, width)
    v = split_heads(b, linear(b, x, size, shared * width), shared, width)
    past, offset = [], None
    if caches:
        past = [b.input(b.name("past"), ["N", shared, "P", width]) for _ in range(2)]
        if b.chance(0.6):
            offset = b.dim(past[0], 2)
    if b.chance(0.5):
        cos, sin = angles(b, x, width, past[0] if past else None)
        twisted = b.chance(0.4)
        q, k = (rotary(b, each, width, cos, sin, twisted) for each in (q, k))
    if past:
        k, v = (b.op("Concat", p, each, axis=2) for p, each in zip(past, (k, v), strict=True))
        b.outputs += [k, v]
    k, v = (repeat_heads(b, each, times, shared, width) for each in (k, v))
    form = b.rng.randrange(5)
    kt = b.op("Transpose", k, perm=[0, 1, 3, 2])
    if form == 0:
        q, kt = (b.op("Mul", each, b.number(width**-0.25)) for each in (q, kt))
    if form == 1:
        q = b.op("Mul", q, b.number(width**-0.5))
    scores = b.op("MatMul", q, kt)
    if form == 2:
        scores = b.op("Div", scores, b.number(width**0.5))
    if form == 3:
        root = b.op("Sqrt", b.op("Cast", b.dim(q, -1), to=b.type))
        scores = b.op("Div", scores, root)
    scores = masked(b, scores, "T" if caches else "M", offset)
    y = b.op("MatMul", softmax(b, scores), v)
    y = b.op("Transpose", y, perm=[0, 2, 1, 3])
    whole = heads * width
    shape = (
        b.ints(0, 0, whole)
        if b.chance(0.5)
        else b.shape(b.dim(x, 0), b.dim(x, 1), b.pick(whole, -1))
    )
    return linear(b, b.op("Reshape", y, shape), whole, size)


def block(b: Builder, x: str, size: int, caches: bool) -> str:
    if b.chance(0.6):
        x = b.op("Add", x, attention(b, norm(b, x, size), size, caches))
        return b.op("Add", x, mlp(b, norm(b, x, size), size))
    x = norm(b, b.op("Add", attention(b, x, size, caches), x), size)
    return norm(b, b.op("Add", x, mlp(b, x, size)), size)


def transformer(b: Builder) -> None:
    """One or two blocks, perhaps in a branch or a loop."""
    size = b.pick(4, 6, 9)
    rows = 1 if b.chance(0.2) else "M"
    if rows == 1:
        b.sizes["M"] = (1, 1)
        b.sizes["T"] = (b.sizes["P"][0] + 1, b.sizes["P"][1] + 1)
    x = b.input("x", ["N", "M" if rows == "M" else 1, size])
    caches = b.chance(0.5)
    for _ in range(b.pick(1, 1, 2)):
        if b.chance(0.25):
            x = around(b, x, lambda y: block(b, y, size, False))
        else:
            x = block(b, x, size, caches)
    b.outputs.append(x)
