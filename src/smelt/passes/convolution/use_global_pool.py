"""Replace an AveragePool whose only window covers the whole image by GlobalAveragePool.

    before   x: [N,C,7,7] ─> AveragePool(kernel 7 x 7) ─> y: [N,C,1,1]
    after    x ─> GlobalAveragePool ─> y

A kernel may also be larger than the image, with ``ceil_mode``: transformers' EfficientNet pools
images of 7 x 7 by a kernel of 1280 x 1280. Runtimes divide by the pixels inside the image, but
walk over the kernel. An EfficientNet of four blocks, whose last image has 56 x 56 pixels, takes
0.47 of its time in ONNX Runtime with a GlobalAveragePool.

Needs    (1) image sizes that are numbers, none larger than the kernel; (2) one window.
Keeps    (1) pads, automatic ones too, and dilated kernels.
"""

from __future__ import annotations

from operator import lt

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass


@rule(op("AveragePool", var("x")), same_shape=True)
def pool_of_whole_image(m: Match, b: Builder) -> Replacement:
    """Replace the AveragePool by a GlobalAveragePool."""
    sizes, result = m["x"].shape, m.root.outputs[0].shape
    if sizes is None or result is None or set(result.dims[2:]) != {1}:  # needs 2
        return None
    kernel = opset.attribute(m.root, "kernel_shape", m.opset)
    image = [size for size in sizes.dims[2:] if isinstance(size, int) and size > 0]
    if len(image) != len(kernel) or any(map(lt, kernel, image)):  # needs 1
        return None
    if opset.attribute(m.root, "auto_pad", m.opset) not in ("NOTSET", "VALID"):  # keeps 1
        return Miss("auto_pad of the AveragePool is neither NOTSET nor VALID")
    if any(opset.attribute(m.root, "pads", m.opset) or ()):
        return Miss("the AveragePool has pads")
    if any(step != 1 for step in opset.attribute(m.root, "dilations", m.opset) or ()):
        return Miss("the kernel of the AveragePool is dilated")
    return b.op("GlobalAveragePool", m["x"])


use_global_pool = rule_pass(
    "use_global_pool",
    __doc__,
    [pool_of_whole_image],
    exactness=rounding(4, "kernels sum in another order"),
)
