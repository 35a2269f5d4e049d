"""Compute large convolutions as products of the filters with packed panels of pixels."""

from __future__ import annotations

from smelt.native.kernels import kernel_of
from smelt.native.kernels.conv_panels import CONV, product_sizes
from smelt.native.kernels.convolution import direct, rows
from smelt.native.kernels.convolution.window import window_of
from smelt.native.kernels.instance import Instance
from smelt.native.rewrite.choose import choose
from smelt.program.instruction import Program

FEWEST_FILTERS, FEWEST_PIXELS, WORTH = 8, 32, 1 << 18
"""The fewest filters (or terms of a sum), pixels and multiply-adds for which packing pays."""


def convolve_packed(program: Program) -> None:
    """Replace large Convs by ``CONV``, in place, bodies included."""
    choose(program, lambda instance: CONV if _is_worth(instance) else None)


def _is_worth(instance: Instance) -> bool:
    """True if a packed product pays: many filters, terms and pixels, and no faster kernel."""
    conv_kernel = kernel_of("Conv")
    if (
        instance.instruction.op != "Conv"
        or conv_kernel is None
        or conv_kernel.refuse(instance) is not None
    ):
        return False
    filters, pixels, terms = product_sizes(instance)
    window = window_of(instance)
    if direct.leaves_pixel_lanes_idle(instance, window):
        return False
    if direct.reads_well_in_place(instance, window) and not rows.supports(instance, window):
        return False
    return (
        min(filters, terms) >= FEWEST_FILTERS
        and pixels >= FEWEST_PIXELS
        and filters * pixels * terms >= WORTH
    )
