"""Moves of neural networks: convolutions with what follows them, pooling, norms, products, sums."""

from __future__ import annotations

import onnx_ir as ir
from random_graphs.draft import (
    AXES_ARE_AN_INPUT,
    FLOAT,
    INT,
    REDUCTIONS,
    Draft,
    Move,
    NoMove,
    dims,
    needs_some,
    permutation,
    static,
)

SAME_OF_ONE = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
"""Reductions of one element to itself: of others, that reduce nothing, versions of ONNX differ."""


def convolution(d: Draft) -> None:
    """A Pad, a Conv or ConvTranspose, and what is often folded into it."""
    x = d.float(4)
    static(x, 1)
    if d.chance(0.3):
        value = d.const(d.rng.choice([0.0, 0.0, 0.5]))
        pads = [0, 0, *(d.rng.choice([0, 1]) for _ in "hw"), 0, d.rng.choice([0, 0, 2]), 1, 0]
        x = d.op("Pad", x, d.ints(*pads), value)
    channels = static(x, 1)
    group = d.rng.choice([1, 1, 2]) if channels % 2 == 0 else 1
    transposed = d.chance(0.4)
    if transposed:
        needs_some(x)  # ONNX Runtime ends the process over an image without columns
    made = channels if d.chance(0.4) else d.rng.choice([3, 5, 6] if group == 1 else [4, 6])
    shape = (channels, made // group, 2, 2) if transposed else (made, channels // group, 2, 2)
    bias = [d.normal(made)] if d.chance(0.5) else []
    strides = [d.rng.choice([1, 1, 2])] * 2
    pads = [d.rng.choice([0, 0, 1]) for _ in range(4)]
    kind = "ConvTranspose" if transposed else "Conv"
    y = d.op(kind, x, d.normal(*shape), *bias, group=group, strides=strides, pads=pads)
    if any(isinstance(size, int) and size < 1 for size in dims(y)):
        return  # The kernel is larger than the image: the model is invalid.
    for _ in range(d.rng.randint(0, 2)):
        y = _after_convolution(d, y)


def _after_convolution(d: Draft, y: ir.Value) -> ir.Value:
    channels = static(y, 1)
    kind = d.rng.randrange(6)
    if kind == 0:
        scale, shift, mean = (d.normal(channels) for _ in range(3))
        variance = d.const(d.generator().uniform(0.5, 2, channels))
        return d.op("BatchNormalization", y, scale, shift, mean, variance)
    if kind == 1:
        return d.op("Relu", y)
    if kind == 2:
        return d.op("Transpose", y, perm=d.rng.choice([[0, 2, 3, 1], permutation(d, 4)]))
    last = dims(y)[-1]
    shapes = [(), (1,), (channels, 1, 1), (1, channels, 1, 1), (1, 1, 1, 1, 1)]
    shapes += [(last,), (last, 1)] if isinstance(last, int) else []
    shapes += [(last,)] * 12 if last == channels else []  # One number a column, not a channel.
    order = [y, d.normal(*d.rng.choice(shapes))]
    if d.chance(0.4):
        order.reverse()
    return d.op(d.rng.choice(["Add", "Sub", "Mul", "Div"]), *order)


def conv1d(d: Draft) -> None:
    """A one-dimensional convolution, spelled with two dims."""
    x = d.float(3)
    channels = static(x, 1)
    axis = d.rng.choice([2, 3])
    y = d.op("Unsqueeze", x, d.ints(axis))
    kernel = [1, 2] if axis == 2 else [2, 1]
    if d.chance(0.4):
        kernel = [2, 2]
    if kernel == [2, 2] and d.chance(0.7):
        pads = d.rng.choice([[1, 0, 0, 1], [0, 1, 1, 0]])
    else:
        pads = d.rng.choice([[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
    y = d.op("Conv", y, d.normal(3, channels, *kernel), pads=pads)
    d.op("Squeeze", y, d.ints(axis))


def pool(d: Draft) -> None:
    x = d.float(4)
    kind = d.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if d.chance(0.4):
        x = d.op("Pad", x, d.ints(0, 0, d.rng.choice([0, 1]), 1, 0, 0, 1, d.rng.choice([0, 1])))
    if kind.startswith("Global"):
        d.op(kind, x)
        return
    pads = [d.rng.choice([0, 0, 1])] * 4 if d.chance(0.7) else [0, 1, 1, 0]
    extra = {"count_include_pad": d.rng.choice([0, 1])} if kind == "AveragePool" else {}
    strides = [d.rng.choice([1, 2])] * 2
    d.op(kind, x, kernel_shape=[3, 3], strides=strides, pads=pads, **extra)


def normalization(d: Draft) -> None:
    x = d.float()
    rank = len(dims(x))
    if rank < 3:
        raise NoMove
    channels = static(x, 1)
    if d.chance(0.5):
        d.op("InstanceNormalization", x, d.normal(channels), d.normal(channels))
    else:
        last = static(x, -1)
        d.op("LayerNormalization", x, d.normal(last), d.normal(last), axis=-1)


def linear(d: Draft) -> None:
    """A product with a constant, and a sum with one: of a row, of rows, of more."""
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2 and isinstance(dims(v)[-1], int))
    inner, outer = static(x, -1), d.rng.choice([1, 4, 6])
    if d.chance(0.5):
        x = d.op("Reshape", x, d.ints(-1, inner))
    if d.chance(0.2):
        y = d.op("MatMul", d.normal(5, static(x, -2)), x)
        outer = inner
    else:
        y = d.op("MatMul", x, d.normal(inner, outer))
    shape = d.rng.choice([(outer,), (), (1,), (1, outer), (1, 1, outer), (1, 1, 1, outer)])
    order = d.rng.sample([y, d.normal(*shape)], 2)
    if d.chance(0.8):
        d.op(d.rng.choice(["Add", "Sub"]), *order)


def gemm(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) == 2 and isinstance(dims(v)[1], int))
    inner = static(x, 1)
    trans = d.rng.choice([0, 1])
    weight = d.normal(*((4, inner) if trans else (inner, 4)))
    alpha, beta = d.rng.choice([1.0, 0.5]), d.rng.choice([1.0, 2.0, 0.0])
    bias = [d.normal(4)] if d.chance(0.6) else []
    y = d.op("Gemm", x, weight, *bias, transB=trans, alpha=alpha, beta=beta)
    order = d.rng.sample([y, d.normal(*d.rng.choice([(4,), (1,), (1, 4), (1, 1, 4)]))], 2)
    d.op(d.rng.choice(["Add", "Sub"]), *order)


def transposed_product(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and len(dims(v)) >= 2)
    rank = len(dims(x))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    y = d.op("Transpose", x, perm=swapped if d.chance(0.8) else permutation(d, rank))
    d.op("MatMul", *d.rng.sample([x, y], 2))


def reduction(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    rank = len(dims(x))
    axes = d.rng.sample(range(-rank, rank), d.rng.randint(1, min(2, rank)))
    if len({axis % rank for axis in axes}) < len(axes):
        axes = axes[:1]
    needs_some(x)
    kind, keepdims = d.rng.choice(REDUCTIONS), d.rng.choice([0, 1])
    if d.chance(0.4):
        _without_axes(d, kind, x, keepdims)
        return
    y = d.reduce(kind, x, axes, keepdims=keepdims)
    if d.chance(0.3):
        sizes = [static(x, axis) for axis in axes]
        count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        if d.chance(0.5):
            d.op("Div", y, d.const(d.rng.choice([count, count, count * 1.003])))
        else:
            d.op("Mul", y, d.const(1 / count))


def _without_axes(d: Draft, kind: str, x: ir.Value, keepdims: int) -> None:
    """No axes, or an empty list of them, which mean all, or none if an attribute says so."""
    axes = d.rng.choice([None, []])
    says = d.chance(0.4) and d.opset >= AXES_ARE_AN_INPUT.get(kind, 18)
    if says and kind in SAME_OF_ONE:
        d.reduce(kind, x, axes, keepdims=keepdims, noop_with_empty_axes=d.rng.choice([0, 1]))
    else:
        d.reduce(kind, x, axes, keepdims=keepdims)


def argument(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    axis = d.rng.randrange(-len(dims(x)), 0)
    needs_some(x)
    y = d.op(d.rng.choice(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=d.rng.choice([0, 1]))
    if d.chance(0.5):
        hot = d.op("OneHot", y, d.const(static(x, axis), INT), d.const([0.0, 1.0]))
        d.op("MatMul", hot, d.normal(static(x, axis), 3))


def softmax(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    axis = d.rng.randrange(-len(dims(x)), len(dims(x)))
    d.op(d.rng.choice(["Softmax", "LogSoftmax"]), x, axis=axis)


def running_sum(d: Draft) -> None:
    x = d.pick(lambda v: v.dtype == FLOAT and bool(dims(v)))
    axis = d.const(d.rng.randrange(-len(dims(x)), len(dims(x))), INT)
    d.op("CumSum", x, axis, reverse=d.rng.choice([0, 1]))


def quantized(d: Draft) -> None:
    """Quantize, move, dequantize; the second scale is another at times."""
    x = d.float()
    scale = d.const(d.rng.choice([0.05, 0.1, 0.5]))
    kind = d.rng.choice([ir.DataType.INT8, ir.DataType.UINT8])
    zero = d.const(d.rng.choice([0, 3]), kind)
    q = d.op("QuantizeLinear", x, scale, zero)
    y = d.op("DequantizeLinear", q, scale, zero)
    if d.chance(0.5) and len(dims(y)) >= 2:
        y = d.op("Transpose", y, perm=permutation(d, len(dims(y))))
    again = scale if d.chance(0.7) else d.const(0.2)
    q = d.op("QuantizeLinear", y, again, zero)
    d.op("DequantizeLinear", q, again, zero)


MOVES: list[Move] = [
    *(convolution, convolution, convolution, conv1d, pool, normalization, linear, linear, gemm),
    *(
        transposed_product,
        reduction,
        reduction,
        reduction,
        argument,
        softmax,
        running_sum,
        quantized,
    ),
]
