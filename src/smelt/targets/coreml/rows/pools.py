"""Rows for poolings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.windows import Window
from smelt.targets.coreml.writer import Refused, Val


@writes("MaxPool", "AveragePool", "LpPool")
def pool(c: Call) -> None:
    """Write max_pool or avg_pool; LpPool is ``(mean(|x|**p) * kernel size) ** (1 / p)``."""
    name, x = c.node.op_type, c.x()
    if len(c.node.outputs) > 1 and any(
        each.uses() or each.is_graph_output() for each in c.node.outputs[1:]
    ):
        raise Refused("Core ML returns no indices of a maximum")
    if not x.is_float:
        raise Refused("Core ML pools floats only", "cast to float32")
    if x.rank not in (3, 4, 5):
        raise Refused(f"it has {x.rank - 2} spatial dims; Core ML pools 1, 2 or 3")
    window = Window(c, c.attribute("kernel_shape"))
    kind = window.resolve_auto(x.dims[2:])
    ceil, padded = _rounded_up(c, window, x, kind)
    if any(dilation != 1 for dilation in window.dilations):
        c.done(_dilated(c, x, window))
        return
    inputs: dict[str, Any] = {
        "kernel_sizes": window.kernel,
        "strides": window.strides,
        "pad_type": "custom" if padded else kind,
        "pad": window.pads("custom" if padded else kind),
        "ceil_mode": ceil,
    }
    if name == "MaxPool":
        c.done(c.write("max_pool", x=x, **inputs))
        return
    exclude = not c.attribute("count_include_pad")
    if name == "AveragePool":
        result = c.write("avg_pool", x=x, exclude_padding_from_average=exclude, **inputs)
        if padded and not exclude:
            result = c.op("mul", result, _mean_correction(c, x, window))
        c.done(result)
        return
    if ceil:
        raise Refused("it rounds the number of its windows up over open sizes")
    order = float(c.attribute("p"))
    powered = c.op("abs", x) if order == 1 else _power(c, c.op("abs", x), order)
    mean = c.w.op(
        "avg_pool", x.element, c.out_dims(), x=powered, exclude_padding_from_average=False, **inputs
    )
    total = c.op("mul", mean, float(math.prod(window.kernel)))
    c.done(total if order == 1 else _power(c, total, 1 / order))


def _power(c: Call, x: Val, order: float) -> Val:
    """Return ``x ** order``, where ``x`` is 0 or more; squares and roots have exact operations."""
    if order == 2:
        return c.op("mul", x, x)
    return c.op("sqrt", x) if order == 0.5 else c.op("pow", x, order)


def _rounded_up(c: Call, window: Window, x: Val, kind: str) -> tuple[bool, bool]:
    """Return ``(ceil, padded)``: MIL's ceil_mode, and whether ``window`` got pads instead of it.

    With known sizes, the pads at the end grow until the rounded-up number of windows fits.
    """
    if not c.attribute("ceil_mode"):
        return False, False
    sizes, results = x.dims[2:], c.out_dims()[2:]
    if None in sizes or None in results:
        return True, False
    padded = False
    for axis, (size, result) in enumerate(zip(sizes, results, strict=True)):
        assert size is not None
        assert result is not None
        extent = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        needed = (result - 1) * window.strides[axis] + extent
        more = needed - (size + window.before[axis] + window.after[axis])
        if more > 0:
            window.after[axis] += more
            window.beyond[axis] = more
            padded = True
    return False, padded


def _dilated(c: Call, x: Val, window: Window) -> Val:
    """Return a pooling with dilated windows, which MIL lacks.

    It is the maximum or the mean of strided slices, one for each element of the kernel.
    """
    name = c.node.op_type
    if name == "LpPool" or None in x.dims or None in c.out_dims():
        raise Refused("dilated windows of this kind over open sizes")
    results = [size or 0 for size in c.out_dims()[2:]]
    fill = -np.inf if name == "MaxPool" else 0.0
    padded = _padded(c, x, window, fill)
    total = _combined_slices(c, padded, window, results, "maximum" if name == "MaxPool" else "add")
    if name == "MaxPool":
        return total
    mean = c.op("mul", total, 1 / math.prod(window.kernel))
    return c.op("mul", mean, _mean_correction(c, x, window))


def _mean_correction(c: Call, x: Val, window: Window) -> np.ndarray:
    """Return, for each window, the kernel size over the number of elements that count.

    Times this factor, a mean over the whole kernel becomes the mean that ONNX defines. Elements
    that only ceil_mode adds do not count, and pads only with count_include_pad.
    """
    pads = list(zip(window.before, window.after, strict=True))
    within = [(low, high - more) for (low, high), more in zip(pads, window.beyond, strict=True)]
    fill = 1 if c.attribute("count_include_pad") else 0
    counted = np.pad(np.ones([size or 0 for size in x.dims[2:]]), within, constant_values=fill)
    counted = np.pad(counted, [(0, more) for more in window.beyond])
    total = np.zeros([size or 0 for size in c.out_dims()[2:]])
    for place in itertools.product(*(range(size) for size in window.kernel)):
        total += counted[
            tuple(
                slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
                for at, dilation, count, stride in zip(
                    place, window.dilations, total.shape, window.strides, strict=True
                )
            )
        ]
    share = math.prod(window.kernel) / total[None, None]
    return np.asarray(share, x.element.numpy)


def _padded(c: Call, x: Val, window: Window, fill: float) -> Val:
    """Return ``x`` padded by ``fill`` as ``window`` says."""
    if not any(window.before + window.after):
        return x
    grown = [
        (size or 0) + low + high
        for size, low, high in zip(x.dims[2:], window.before, window.after, strict=True)
    ]
    value = np.asarray(fill, x.element.numpy)
    pads = [0, 0, 0, 0, *window.interleaved()]
    return c.w.op(
        "pad", x.element, (*x.dims[:2], *grown), x=x, pad=pads, mode="constant", constant_val=value
    )


def _combined_slices(c: Call, x: Val, window: Window, results: Sequence[int], op_type: str) -> Val:
    """Return strided slices of ``x``, one for each kernel element, combined by ``op_type``.

    ``results`` are the sizes of the result's spatial axes.
    """
    total: Val | None = None
    for place in itertools.product(*(range(size) for size in window.kernel)):
        starts = [each * dilation for each, dilation in zip(place, window.dilations, strict=True)]
        ends = [
            start + (count - 1) * stride + 1
            for start, count, stride in zip(starts, results, window.strides, strict=True)
        ]
        tap = c.w.op(
            "slice_by_index",
            x.element,
            (*x.dims[:2], *results),
            x=x,
            begin=[0, 0, *starts],
            end=[0, 0, *ends],
            stride=[1, 1, *window.strides],
            begin_mask=[True, True, *(False for _ in starts)],
            end_mask=[True, True, *(False for _ in starts)],
            squeeze_mask=[False] * x.rank,
        )
        total = tap if total is None else c.op(op_type, total, tap)
    assert total is not None
    return total


@writes("GlobalLpPool")
def global_lp_pool(c: Call) -> None:
    """Write the root of the sum of powers over all dims after the channels."""
    x, order = c.x(), float(c.attribute("p"))
    axes = range(2, x.rank)
    if order in (1, 2):
        c.done(c.reduce("reduce_l1_norm" if order == 1 else "reduce_l2_norm", x, axes))
        return
    total = c.reduce("reduce_sum", _power(c, c.op("abs", x), order), axes)
    c.done(_power(c, total, 1 / order))
