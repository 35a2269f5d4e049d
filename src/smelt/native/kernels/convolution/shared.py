"""Convolutions by one C function that all layers of a small library share.

The function copies the window of one pixel, with zeros for padding, and multiplies the copy with
the weights of all filters. A constant table in flash has the sizes of a layer.
"""

from __future__ import annotations

import math

from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import ends_in_relu
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.shared_product import function, sizes_table

CONVOLVE = """\
static void convolve_{type}(const ptrdiff_t *by, const {type} *x, const {type} *w,
    const {type} *bias, {type} *y, {type} *copy)
{{
    const ptrdiff_t d = by[4], h = by[5], wide = by[6], *const product = by + 22;
    const ptrdiff_t most0 = by[10] * by[16], most1 = by[11] * by[17], most2 = by[12] * by[18];
    for (ptrdiff_t group = 0; group < by[0]; ++group) {{
        const ptrdiff_t filter = group % by[1] * by[3];
        {type} *out = y + group * by[3] * product[8];
        for (ptrdiff_t o0 = 0; o0 < by[7]; ++o0)
        for (ptrdiff_t o1 = 0; o1 < by[8]; ++o1)
        for (ptrdiff_t o2 = 0; o2 < by[9]; ++o2) {{
            const ptrdiff_t at0 = o0 * by[13] - by[19];
            const ptrdiff_t at1 = o1 * by[14] - by[20];
            const ptrdiff_t at2 = o2 * by[15] - by[21];
            {type} *to = copy;
            for (ptrdiff_t c = group * by[2]; c < (group + 1) * by[2]; ++c)
            for (ptrdiff_t p0 = at0; p0 < at0 + most0; p0 += by[16])
            for (ptrdiff_t p1 = at1; p1 < at1 + most1; p1 += by[17]) {{
                const int seen = p0 >= 0 && p0 < d && p1 >= 0 && p1 < h;
                const ptrdiff_t limit = seen ? wide : 0, row = ((c * d + p0) * h + p1) * wide;
                for (ptrdiff_t p2 = at2; p2 < at2 + most2; p2 += by[18])
                    *to++ = p2 >= 0 && p2 < limit ? x[row + p2] : 0;
            }}
            {product}(product, copy, w + filter * product[2], bias ? bias + filter : bias, out++);
        }}
    }}
}}
"""
"""The numbers of ``by``: images times groups, groups, channels and filters of a group; then of
three dims each image, result, kernel, strides, dilations, pads before; then the product's."""


FEWEST_FILTERS = 4
"""Instructions a product on a Cortex-M4: 4 and fewer with 8 filters or more; 46 with one filter,
where ``plain`` takes 10."""


def supports(instance: Instance, window: Window) -> bool:
    """True if enough filters read the copy of a window to pay for it."""
    return channels_of(instance)[1] >= FEWEST_FILTERS


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of the copy of one window."""
    return _window_elements(instance, window) * instance.type(0).size


def _window_elements(instance: Instance, window: Window) -> int:
    """Return the number of elements that one result sums over."""
    return channels_of(instance)[0] * math.prod(window.kernel)


def emit(cx: KernelContext, window: Window) -> None:
    """Write the call of the shared function with a table of this layer's sizes.

    ```
    static const ptrdiff_t sizes[] = { 1, 1, 8, 16, … };
    convolve_float(sizes, x0, x1, x2, y0, scratch);
    ```
    """
    channels, filters = channels_of(cx)
    groups, output, bias = cx.int("group"), cx.output(), cx.optional(2)
    summed, type_ = _window_elements(cx, window), cx.type(0)
    table = [output.shape[0] * groups, groups, channels, filters, *window.input, *window.output]
    table += [*window.kernel, *window.strides, *window.dilations, *window.begin]
    table += [1, filters, summed, 0, 1, 1, summed, 0, window.pixels, int(ends_in_relu(cx))]
    text = CONVOLVE.format(type=type_.name, product=function(cx, contiguous=True))
    name = cx.call(f"convolve_{type_.name}", text)
    operands = [cx.input(0).name, cx.input(1).name, bias.name if bias is not None else "NULL"]
    arguments = [sizes_table(cx, table), *operands, output.name, cx.scratch(type_)]
    cx.body.line(f"{name}({', '.join(arguments)});")


ALGORITHM = Algorithm(emit, workspace, supports)
