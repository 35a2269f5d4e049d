"""ReduceLogSumExp in two passes."""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.reduce import loop_names, loops_of


@kernel("ReduceLogSumExp")
def log_sum_exp(cx: KernelContext) -> None:
    """Write ``log(sum(exp(x)))``, relative to the largest element of each row, so nothing
    overflows.

    ```
    top = (v > top || v != v) ? v : top;
    ...
    sum += expf(x0[i0 * 20 + i1] - top);
    y0[i1] = top + logf(sum);
    ```
    """
    body, loops, type_ = cx.body, loops_of(cx), cx.type(0)
    names = loop_names(len(loops.sizes))
    kept_loops, reduced_loops = loops.where(False), loops.where(True)
    inner = ([names[i] for i in reduced_loops], [loops.sizes[i] for i in reduced_loops])
    with body.loops([names[i] for i in kept_loops], [loops.sizes[i] for i in kept_loops]):
        body.line(f"{type_.name} top = -INFINITY, sum = 0;")
        with body.loops(*inner):
            body.line(f"const {type_.name} v = {loops.read.at(names)};")
            body.line("top = (v > top || v != v) ? v : top;")
        body.line("if (top == INFINITY || top == -INFINITY)")
        body.line("    top = 0;")
        with body.loops(*inner):
            body.line(f"sum += exp{type_.f}({loops.read.at(names)} - top);")
        body.line(f"{loops.write.at(names)} = top + log{type_.f}(sum);")
