"""Softmax and the normalization operators."""

from __future__ import annotations

import numpy as np

from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel("Softmax", "LogSoftmax", wide=True)
def softmax(call: Call) -> Step:
    """Return the step of a Softmax; it subtracts the maximum, so that no finite input overflows."""
    axis, logarithm = call.integer("axis"), call.op == "LogSoftmax"
    if call.input(0).ndim == 0:
        return Step(lambda x, out: np.copyto(out, 0.0 * x + (not logarithm)))

    def run(x: Array, out: Array) -> None:
        """Write the softmax, or its logarithm, relative to the largest element."""
        np.subtract(x, np.max(x, axis=axis, keepdims=True, initial=-np.inf), out)
        if logarithm:
            out -= np.log(np.sum(np.exp(out), axis=axis, keepdims=True))
            return
        np.exp(out, out)
        out /= np.sum(out, axis=axis, keepdims=True)

    return Step(run, in_place=(0,))


@kernel("Hardmax")
def hardmax(call: Call) -> Step:
    """Return the step that writes 1 at the first maximum of each row and 0 elsewhere."""
    axis = call.integer("axis")

    def run(x: Array, out: Array) -> None:
        """Write 1 at the first largest element of each row, 0 elsewhere."""
        out[...] = 0
        if x.size:
            top = np.argmax(x, axis=axis, keepdims=True)
            np.put_along_axis(out, top, np.ones((), out.dtype), axis)

    return Step(run)


@kernel("BatchNormalization", wide=True)
def batch_normalization(call: Call) -> Step:
    """Return the step of a BatchNormalization, with one factor and one addend per channel."""
    epsilon = call.real("epsilon")
    shape = (-1, *(1 for _ in call.input(0).shape[2:]))

    def run(x: Array, *arrays: Array) -> None:
        """Write ``x`` times one factor plus one addend per channel."""
        scale, bias, mean, variance, out = arrays
        factor = scale / np.sqrt(variance + epsilon)
        summand = bias - mean * factor
        np.multiply(x, factor.reshape(shape).astype(out.dtype, copy=False), out)
        np.add(out, summand.reshape(shape).astype(out.dtype, copy=False), out)

    return Step(run, in_place=(0,))


def _standardize(
    x: Array, axes: tuple[int, ...], epsilon: float, out: Array
) -> tuple[Array, Array]:
    """Write ``(x - mean) / deviation`` over ``axes`` into ``out``; return mean and 1
    / deviation.
    """
    mean = np.mean(x, axis=axes, keepdims=True)
    np.subtract(x, mean, out)
    variance = np.mean(out * out, axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + epsilon)
    np.multiply(out, inverse, out)
    return mean, inverse


@kernel("LayerNormalization", wide=True)
def layer_normalization(call: Call) -> Step:
    """Return the step that normalizes the dims from ``axis`` on, and writes mean and 1 / deviation
    if present.
    """
    rank, first, epsilon = call.input(0).ndim, call.integer("axis"), call.real("epsilon")
    axes, has_bias, count = tuple(range(first, rank)), call.has(2), len(call.inputs)

    def run(*arrays: Array) -> None:
        """Write the normalized rows, and mean and inverse deviation if they are outputs."""
        x, scale, (out, *others) = arrays[0], arrays[1], arrays[count:]
        statistics = _standardize(x, axes, epsilon, out)
        np.multiply(out, scale, out)
        if has_bias:
            np.add(out, arrays[2], out)
        for target, value in zip(others, statistics, strict=False):
            np.copyto(target, value, casting="unsafe")

    return Step(run)


@kernel("RMSNormalization", wide=True)
def rms_normalization(call: Call) -> Step:
    """Return the step of a LayerNormalization that subtracts no mean."""
    axes = tuple(range(call.integer("axis"), call.input(0).ndim))
    epsilon = call.real("epsilon")

    def run(x: Array, scale: Array, out: Array) -> None:
        """Write ``x`` divided by the root of its mean square, times ``scale``."""
        square = np.mean(x * x, axis=axes, keepdims=True)
        np.multiply(x / np.sqrt(square + epsilon), scale, out)

    return Step(run)


@kernel("InstanceNormalization", "GroupNormalization", wide=True)
def group_normalization(call: Call) -> Step:
    """Return the step that normalizes each group of channels of each sample.

    In an InstanceNormalization, each channel is a group of its own.
    """
    shape, epsilon = call.input(0).shape, call.real("epsilon")
    count = call.integer("num_groups") if call.op == "GroupNormalization" else shape[1]
    if count < 1 or shape[1] % count:
        raise call.refuse(f"{shape[1]} channels do not divide into {count} groups")
    grouped = (shape[0], count, shape[1] // count, *shape[2:])
    axes = tuple(range(2, len(grouped)))
    per_channel = (-1, *(1 for _ in shape[2:]))

    def run(x: Array, scale: Array, bias: Array, out: Array) -> None:
        """Write the rows, normalized by group, with scale and bias per channel."""
        _standardize(x.reshape(grouped), axes, epsilon, out.reshape(grouped, copy=False))
        np.multiply(out, scale.reshape(per_channel), out)
        np.add(out, bias.reshape(per_channel), out)

    return Step(run)


@kernel("LRN", wide=True)
def local_response_normalization(call: Call) -> Step:
    """Return the step of an LRN: x / (bias + alpha / size * sum of squares of near channels)^beta.

    The sum adds the squares shifted by one channel, then by the next, and so on.
    """
    alpha, beta, bias = call.real("alpha"), call.real("beta"), call.real("bias")
    size, channels = call.integer("size"), call.input(0).shape[1]
    before, after = (size - 1) // 2, size // 2

    def run(x: Array, out: Array) -> None:
        """Write ``x`` divided by a power of the sum of squares over nearby channels."""
        squares, total = x * x, np.zeros_like(x)
        for shift in range(-before, after + 1):
            low, high = max(0, -shift), channels - max(0, shift)
            if low < high:
                total[:, low:high] += squares[:, low + shift : high + shift]
        np.divide(x, (bias + alpha / size * total) ** beta, out)

    return Step(run)
