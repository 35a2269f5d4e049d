"""Rows for convolutions, and ``Window``, the attributes of convolutions and poolings.

ONNX lists the pads of all starts, then of all ends. MIL lists start and end of each axis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Dims, Refused, Val

SAME_PADS = {"SAME_UPPER": "same", "SAME_LOWER": "same_lower"}


class Window:
    """The attributes of a convolution or pooling; each list has one entry for a spatial axis.

    ``before`` and ``after`` are the pads; ``beyond`` is the part of ``after`` that ceil_mode adds.
    ``extent`` in the methods is the size of a window with its dilation.
    """

    def __init__(self, c: Call, kernel: Sequence[int]) -> None:
        """Read the attributes of the node; raises Refused for negative pads."""
        self.kernel = list(kernel)
        count = len(self.kernel)
        self.strides = list(c.attribute("strides") or [1] * count)
        self.dilations = list(c.attribute("dilations") or [1] * count)
        self.auto = c.attribute("auto_pad") or "NOTSET"
        pads = list(c.attribute("pads") or [0] * 2 * count)
        if self.auto != "NOTSET":
            pads = [0] * 2 * count
        if min(pads) < 0:
            raise Refused("it has negative pads")
        self.before, self.after = pads[:count], pads[count:]
        self.beyond = [0] * count

    def resolve_auto(self, sizes: Sequence[int | None]) -> str:
        """Return MIL's pad_type for the spatial ``sizes`` of the operand.

        With known sizes, auto_pad SAME becomes explicit pads: in total
        ``(ceil(size / stride) - 1) * stride + extent - size``.
        """
        if self.auto not in SAME_PADS:
            return "custom" if any(self.before + self.after) else "valid"
        if None in sizes:
            if any(dilation != 1 for dilation in self.dilations):
                raise Refused("auto_pad of dilated windows over open sizes")
            return SAME_PADS[self.auto]
        for axis, size in enumerate(sizes):
            assert size is not None
            extent = (self.kernel[axis] - 1) * self.dilations[axis] + 1
            stride = self.strides[axis]
            total = max((-(-size // stride) - 1) * stride + extent - size, 0)
            less, more = total // 2, total - total // 2
            upper = self.auto == "SAME_UPPER"
            self.before[axis], self.after[axis] = (less, more) if upper else (more, less)
        return "custom"

    def interleaved(self) -> list[int]:
        """Return the pads as MIL lists them: start and end of each axis."""
        return [each for pair in zip(self.before, self.after, strict=True) for each in pair]

    def pads(self, kind: str) -> list[int]:
        """Return the parameter ``pad`` of MIL for a pad type."""
        return self.interleaved() if kind == "custom" else [0] * 2 * len(self.kernel)


@writes("Conv")
def convolution(c: Call) -> None:
    """Write conv. A computed weight gets zeros between its elements in place of dilations, and a
    computed bias is added."""
    x = c.x(0)
    kernel = c.dims(c.input(1))[2:]
    if x.rank not in (3, 4, 5):
        raise Refused(f"it has {x.rank - 2} spatial dims; Core ML convolves 1, 2 or 3")
    known = [size for size in kernel if size is not None]
    if len(known) < len(kernel):
        raise Refused("the sizes of its kernel are open")
    window = Window(c, known)
    kind, weight = window.resolve_auto(x.dims[2:]), c.x(1)
    if not c.is_weight(1):
        weight = _spread(c, weight, window.dilations)
        window.dilations = [1] * len(kernel)
    result = c.write(
        "conv",
        x=x,
        weight=weight,
        bias=c.x(2) if c.has(2) and c.array(2) is not None else None,
        strides=window.strides,
        pad_type=kind,
        pad=window.pads(kind),
        dilations=window.dilations,
        groups=int(c.attribute("group")),
    )
    if c.has(2) and c.array(2) is None:
        result = c.op("add", result, c.expand(c.x(2), range(1, x.rank - 1)))
    c.done(result)


@writes("ConvTranspose")
def conv_transpose(c: Call) -> None:
    """Write conv_transpose with pads that give the sizes of ONNX.

    If the result is larger than the windows reach, rows of 0 are added at its end; the bias is then
    added after them.
    """
    x, weight = c.x(0), c.dims(c.input(1))
    if None in weight[1:]:
        raise Refused("the sizes of its weight are open")
    if x.rank not in (3, 4, 5):
        raise Refused(f"it has {x.rank - 2} spatial dims; Core ML convolves 1, 2 or 3")
    sizes = [size or 0 for size in weight]
    window = Window(c, sizes[2:])
    added = _set_pads_of_transposed(c, window, x)
    if not c.is_weight(1):
        _by_convolution(c, window, added)
        return
    bias = c.array(2) if c.has(2) else None
    channels = sizes[1] * int(c.attribute("group"))
    later_bias = c.has(2) and (bias is None or any(added))
    dims = c.out_dims()
    inner = tuple(
        None if size is None else size - more for size, more in zip(dims[2:], added, strict=True)
    )
    kind = "custom" if any(window.before + window.after) else "valid"
    result = c.write(
        "conv_transpose",
        dims=(x.dims[0], channels, *inner),
        x=x,
        weight=c.x(1),
        bias=None if later_bias or not c.has(2) else c.x(2),
        strides=window.strides,
        pad_type=kind,
        pad=window.pads(kind),
        dilations=window.dilations,
        groups=int(c.attribute("group")),
    )
    if any(added):
        pads = [0] * 4 + [each for more in added for each in (0, more)]
        zero = np.asarray(0, x.element.numpy)
        result = c.w.op(
            "pad", x.element, dims, x=result, pad=pads, mode="constant", constant_val=zero
        )
    if later_bias:
        result = c.op("add", result, c.expand(c.x(2), range(1, x.rank - 1)))
    c.done(result)


def _spread(c: Call, value: Val, steps: Sequence[int]) -> Val:
    """Return ``value`` with zeros between its elements along the axes behind the first two.

    conv_transpose by a constant weight of 1 for each channel writes them. An open number of
    channels becomes part of the batch.
    """
    channels, ones = value.dims[1], [1] * len(steps)
    if max(steps) == 1:
        return value
    if channels is None:
        merged = _reshaped(c, value, (None, 1, *value.dims[2:]), [-1, 1, *_sizes(c, value, 2)])
        spread = _spread(c, merged, steps)
        shape = [*_sizes(c, value, 0)[:2], *_sizes(c, spread, 2)]
        return _reshaped(c, spread, (*value.dims[:2], *spread.dims[2:]), shape)
    dims = [
        None if size is None else (size - 1) * step + 1
        for size, step in zip(value.dims[2:], steps, strict=True)
    ]
    return c.w.op(
        "conv_transpose",
        value.element,
        (*value.dims[:2], *dims),
        x=value,
        weight=np.ones((channels, 1, *ones), value.element.numpy),
        strides=list(steps),
        pad_type="valid",
        pad=[0] * 2 * len(steps),
        dilations=ones,
        groups=channels,
    )


def _sizes(c: Call, value: Val, first: int) -> list[int | Val]:
    """Return the sizes of ``value`` from the axis ``first`` on; open ones are read in each run."""
    return [
        c.size(value, axis) if size is None else size
        for axis, size in enumerate(value.dims)
        if axis >= first
    ]


def _reshaped(c: Call, value: Val, dims: Dims, shape: Sequence[int | Val]) -> Val:
    """Return ``value`` reshaped to ``shape``, whose sizes that are known ahead are in ``dims``."""
    return c.w.op("reshape", value.element, dims, x=value, shape=c.vector(shape))


def _by_convolution(c: Call, window: Window, added: list[int]) -> None:
    """Write ConvTranspose by a computed weight as conv: the weight is reversed along its spatial
    axes, and ``x`` gets zeros between its elements. ``added`` rows are further pads at the end."""
    x, axes = c.x(0), range(2, 2 + len(window.kernel))
    ends = zip(window.kernel, window.before, window.after, added, strict=True)
    pads = [each for k, low, high, more in ends for each in (k - 1 - low, k - 1 - high + more)]
    if int(c.attribute("group")) != 1 or max(window.dilations) != 1 or min(pads) < 0:
        raise Refused("its weight is computed, with groups, dilations or pads beyond the kernel")
    x, ones = _spread(c, x, window.strides), [1] * len(axes)
    weight = c.x(1)
    turned = c.w.op("reverse", weight.element, weight.dims, x=weight, axes=list(axes))
    result = c.write(
        "conv",
        x=x,
        weight=c.transpose(turned, [1, 0, *axes]),
        strides=ones,
        pad_type="custom",
        pad=pads,
        dilations=ones,
        groups=1,
    )
    if c.has(2):
        result = c.op("add", result, c.expand(c.x(2), range(1, x.rank - 1)))
    c.done(result)


def _set_pads_of_transposed(c: Call, window: Window, x: Val) -> list[int]:
    """Set the pads of ``window``, in place, for output_padding, output_shape and auto_pad; return,
    for each axis, the number of rows of 0 to add at the end of the result.

    Such rows are those that no window reaches, where the pad at the end would be negative. With an
    output size, the total pad is ``stride * (size - 1) + output_padding + extent - output size``.
    """
    count = len(window.kernel)
    extra = list(c.attribute("output_padding") or [0] * count)
    out_sizes = c.attribute("output_shape")
    if out_sizes is None and window.auto in SAME_PADS:
        out_sizes = [
            None if size is None else size * s
            for size, s in zip(x.dims[2:], window.strides, strict=True)
        ]
    added = []
    for axis in range(count):
        size, extent = x.dims[2 + axis], (window.kernel[axis] - 1) * window.dilations[axis] + 1
        if out_sizes is not None:
            if size is None or out_sizes[axis] is None:
                raise Refused("its pads depend on open sizes")
            total = window.strides[axis] * (size - 1) + extra[axis] + extent - out_sizes[axis]
            less, more = total // 2, total - total // 2
            upper = window.auto == "SAME_UPPER"
            window.before[axis], window.after[axis] = (less, more) if upper else (more, less)
        after = window.after[axis] - extra[axis]
        if window.before[axis] < 0:
            raise Refused("its result is larger than its windows reach at the start")
        window.after[axis] = max(after, 0)
        added.append(max(-after, 0))
    return added
