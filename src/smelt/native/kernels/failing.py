"""What ends a run in which nothing can be computed."""

from __future__ import annotations

from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.program.instruction import FAIL


@kernel(FAIL, kinds=ANY)
def fail(cx: KernelContext) -> None:
    """The caller learns it by the error that sizes of other data have."""
    cx.may_fail()
    cx.body.line(f"(void){cx.output().name};")
    cx.body.line("return 1;")
