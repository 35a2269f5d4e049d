"""The instruction that ends a run whose result cannot be computed."""

from __future__ import annotations

from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.program.instruction import FAIL


@kernel(FAIL, kinds=ANY)
def fail(cx: KernelContext) -> None:
    """Write C that ends the run with the error of wrong data-dependent sizes."""
    cx.may_fail()
    cx.body.line(f"(void){cx.output().name};")
    cx.body.line("return 1;")
