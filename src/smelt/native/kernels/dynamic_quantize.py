"""DynamicQuantizeLinear in two passes: the range of the numbers and 0, then the bytes.

As in ONNX Runtime, the range ignores NaN, and the scale is 1 if all numbers are 0.
"""

from __future__ import annotations

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.integer_vectors import declare
from smelt.native.kernels.quantized.quantize_vectors import quantize_run
from smelt.native.kernels.quantized.rounded import rounded

RANGE = """static IF_CALLED void range_of(const float *x, ptrdiff_t n, float *range)
{
    float low = 0.0f, high = 0.0f;
#if SUMS > 1
    const ptrdiff_t whole = n - n % (2 * SUMS);
    reals least[2] = { { 0 } }, most[2] = { { 0 } };
    for (ptrdiff_t i = 0; i < whole; i += 2 * SUMS) {
        for (ptrdiff_t j = 0; j < 2; ++j) {
            const reals v = *(const reals *)(x + i + j * SUMS);
            least[j] = LESSER(v, least[j]);
            most[j] = GREATER(v, most[j]);
        }
    }
    for (ptrdiff_t j = 0; j < 2 * SUMS; ++j) {
        const float v = least[j / SUMS][j % SUMS], w = most[j / SUMS][j % SUMS];
        low = v < low ? v : low;
        high = w > high ? w : high;
    }
#else
    const ptrdiff_t whole = 0;
#endif
    for (ptrdiff_t i = whole; i < n; ++i) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    range[0] = low;
    range[1] = high;
}
"""
"""C that writes the least and the greatest of 0 and n numbers; no comparison with NaN is true."""


def _refuse(instance: Instance) -> str | None:
    """Return why the operand is refused, None if it is float32."""
    return None if instance.type(0).name == "float" else "a type other than float"


@kernel("DynamicQuantizeLinear", refuse=_refuse)
def dynamic_quantize(cx: KernelContext) -> None:
    """Write the range of the numbers, then the bytes, their scale and their zero point.

    ``last`` has the zero point and the sign bits to flip, none for unsigned bytes (``store_two``).
    ``quantize_run`` computes whole vectors, the loop the other elements. It rounds to -512 to 512
    before it adds the zero point: values beyond would saturate with any zero point.

    ```
    range_of(x0, 700, range);
    const float wide = (range[1] - range[0]) / 255.0f;
    const float step = range[1] > range[0] ? wide : 1.0f;
    const int32_t point = rounded(-(range[0] / step), 0.0f, 255.0f);
    const int32_t last[] = { point, 0 };
    y1[0] = step;
    y2[0] = (uint8_t)point;
    ptrdiff_t i = quantize_run(x0, 700, step, last, y0);
    for (; i < 700; ++i) {
        const int32_t v = rounded(x0[i] / step, -512.0f, 512.0f) + point;
        y0[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    ```
    """
    source, output, scale = cx.input(0), cx.output(0), cx.output(1)
    zero, body = cx.output(2), cx.body
    run = quantize_run(cx)
    declare(cx)
    point = rounded(cx, "-(range[0] / step)", 0, 255)
    body.line("float range[2];")
    body.line(f"{cx.call('range_of', RANGE)}({source.name}, {source.size}, range);")
    body.line("const float wide = (range[1] - range[0]) / 255.0f;")
    body.line("const float step = range[1] > range[0] ? wide : 1.0f;")
    body.line(f"const int32_t point = {point};")
    body.line("const int32_t last[] = { point, 0 };")
    body.line(f"{scale.name}[0] = step;")
    body.line(f"{zero.name}[0] = (uint8_t)point;")
    body.line(f"ptrdiff_t i = {run}({source.name}, {source.size}, step, last, {output.name});")
    with body.block(f"for (; i < {source.size}; ++i)"):
        value = rounded(cx, f"{source.name}[i] / step", -512, 512)
        body.line(f"const int32_t v = {value} + point;")
        body.line(f"{output.name}[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);")
