"""Readers of poolings."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import READERS, reads
from smelt.frontends.coreml.windows import windows_of


def _pool(
    call: Call, op_type: str, p: int | None = None, count_include_pad: int | None = None
) -> ir.Value:
    """Return the pooling ``op_type`` of ``x`` over windows of its spatial dims.

    ``p`` and ``count_include_pad`` are attributes of the ONNX operator.
    """
    kernel = call.integers("kernel_sizes")
    windows = windows_of(call, kernel)
    return call.op(
        op_type,
        call.x,
        kernel_shape=kernel,
        ceil_mode=int(call.flag("ceil_mode")) or None,
        strides=windows.strides,
        pads=windows.pads,
        auto_pad=windows.auto_pad,
        p=p,
        count_include_pad=count_include_pad,
    )


READERS["max_pool"] = partial(_pool, op_type="MaxPool")
READERS["l2_pool"] = partial(_pool, op_type="LpPool", p=2)


@reads("avg_pool")
def _avg_pool(call: Call) -> ir.Value:
    """Return the averages of windows; pads count unless exclude_padding_from_average is set."""
    excluded = call.flag("exclude_padding_from_average")
    return _pool(call, "AveragePool", count_include_pad=int(not excluded))
