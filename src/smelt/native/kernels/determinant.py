"""Det by Gaussian elimination with column pivoting."""

from __future__ import annotations

import math

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, as_bytes, kernel
from smelt.program.storage import Needs


def _needs(instance: Instance) -> Needs:
    """Return the scratch space for a copy of the matrix."""
    *_, order = instance.shape(0)
    return Needs(workspace=order * order * instance.type(0).size)


@kernel("Det", needs=_needs)
def det(cx: KernelContext) -> None:
    """Write Gaussian elimination; the determinant is the product of the pivots.

    Each row exchange changes the sign of the product.

    ```
    for (ptrdiff_t k = 0; k < 3; ++k) {
        ... p = the row of the pivot; the rows k and p are exchanged
        const float pivot = scratch[k * 3 + k];
        result *= p != k ? -pivot : pivot;
        for (ptrdiff_t i = k + 1; i < (pivot != 0 ? 3 : 0); ++i)
            ... scratch[i * 3 + j] -= share * scratch[k * 3 + j];
    ```
    """
    source, output, body, type_ = cx.input(0), cx.output(), cx.body, cx.type(0)
    *batch, order, _ = source.shape
    if order == 0:
        with body.loop("b", output.size):
            body.line(f"{output.name}[b] = 1;")
        return
    a = cx.scratch(type_)
    with body.loop("b", math.prod(batch)):
        body.line(f"{type_.name} result = 1;")
        size = order * order
        body.line(f"memcpy({a}, {source.name} + b * {size}, {as_bytes(size * type_.size)});")
        with body.loop("k", order):
            body.line("ptrdiff_t p = k;")
            with body.loop("i", order, start="k + 1"):
                below = f"fabs{type_.f}({a}[i * {order} + k])"
                body.line(f"p = {below} > fabs{type_.f}({a}[p * {order} + k]) ? i : p;")
            with body.loop("j", f"(p != k ? {order} : k)", start="k"):
                body.line(f"const {type_.name} v = {a}[k * {order} + j];")
                body.line(f"{a}[k * {order} + j] = {a}[p * {order} + j];")
                body.line(f"{a}[p * {order} + j] = v;")
            body.line(f"const {type_.name} pivot = {a}[k * {order} + k];")
            body.line("result *= p != k ? -pivot : pivot;")
            with body.loop("i", f"(pivot != 0 ? {order} : 0)", start="k + 1"):
                body.line(f"const {type_.name} share = {a}[i * {order} + k] / pivot;")
                with body.loop("j", order, start="k"):
                    body.line(f"{a}[i * {order} + j] -= share * {a}[k * {order} + j];")
        body.line(f"{output.name}[b] = result;")
