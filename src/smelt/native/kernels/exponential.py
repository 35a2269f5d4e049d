"""exp of contiguous floats by vectors; compilers do not vectorize ``lane_math.EXP`` as well.

With 512-bit vectors there is an instruction for powers of two that handles subnormal numbers.
"""

from __future__ import annotations

from smelt.native.kernels.extremes import LARGER
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.softmax_vectors import EXP
from smelt.native.kernels.vector import PRELUDE
from smelt.program.run_sizes import is_empty

CHUNK = 1024
"""The elements that one call computes."""

_ALL = """static NO_INLINE void exp_of_all(const float *x, float *y, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if LANES >= 8
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vec low = *(const vec *)(x + i), high = *(const vec *)(x + i + LANES);
        *(vec *)(y + i) = vec_exp(low);
        *(vec *)(y + i + LANES) = vec_exp(high);
    }
#endif
    for (; i < n; ++i)
        y[i] = lane_exp(x[i]);
}
"""


def supports(cx: KernelContext) -> bool:
    """True if this file's kernels support the instruction: contiguous float32."""
    return cx.type(0).name == "float" and not cx.view(0) and not is_empty(cx.output_shape())


def emit(cx: KernelContext) -> None:
    """Write a shared loop over calls for ``CHUNK`` elements each.

    ```
    for (ptrdiff_t i = 0; i < 5000; i += 1024) {
        exp_of_all(x0 + i, y0 + i, 5000 - i < 1024 ? 5000 - i : 1024);
    }
    ```
    """
    x, y = cx.input(0), cx.output()
    in_lanes(cx, "expf(x)")
    cx.call("LANES", PRELUDE)
    cx.call("larger", LARGER)
    cx.call("vec_exp", EXP)
    name, size = cx.call("exp_of_all", _ALL), y.size
    with cx.body.shared_loop("i", size, step=CHUNK):
        left = f"{size} - i < {CHUNK} ? {size} - i : {CHUNK}"
        cx.body.line(f"{name}({x.name} + i, {y.name} + i, {left});")
