"""Replace the Add before a LayerNormalization by Sum if the source hid its shape from the runtime.

    before   r = Add(x, s),  y = LayerNormalization(r)
    after    r = Sum(x, s),  y = LayerNormalization(r)

ONNX Runtime fuses an Add of known shape, but never a Sum, into SkipLayerNormalization. That kernel
is faster than the two operators before version 1.30, and slower since. In models with computed
shapes (PyTorch's TorchScript exporter with dynamic axes) the runtime cannot infer the shape and
does not fuse. Optimized models declare the shape; the Sum keeps the runtime from fusing now.

Needs    (1) float32, and operands of equal shape; (2) a sum with one reader; (3) a shape of the sum
         or of the result that was hidden in the source, or a size without a name, which a file
         cannot declare (the runtime then fuses neither Add nor Sum).
Keeps    (1) sums that the runtime could fuse in the source; (2) the Add for targets and consumers
         that do not take every operator of ONNX.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Rewriter
from smelt.ir.same_shape import same_shape
from smelt.ir.symbolic_dims.invented_dims import is_invented
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@graph_pass("sum_residuals", __doc__, exactness=EXACT, after=("fuse_layernorm_or_instancenorm",))
def sum_residuals(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options) -> None:
    """Replace each Add that feeds a LayerNormalization and had no shape in the source by a Sum.

    Targets with a list of kernels keep the Add, because the list may lack Sum.
    """
    if cx.kernels is not None:  # keeps 2
        return
    for norm in list(cx.index().nodes([("", "LayerNormalization")])):
        added = _hidden_sum(norm, cx)
        if added is None or rewriter.exhausted:
            continue
        b = rewriter.builder(added, [added], "sum_residuals")
        rewriter.replace(added, [b.op("Sum", *added.inputs)], rule="sum_residuals")
        stats.fired["sum_residuals"] += 1


def _hidden_sum(norm: ir.Node, cx: PassContext) -> ir.Node | None:
    """Return the Add that ``norm`` reads, else None; the source model hid the shape of its sum."""
    total = norm.inputs[0]
    added = total.producer() if total is not None else None
    if total is None or added is None or (added.domain, added.op_type) != ("", "Add"):
        return None
    x, skip = added.inputs
    if x is None or skip is None or total.dtype != ir.DataType.FLOAT or not is_known(added):
        return None
    if not same_shape(x.shape, skip.shape):  # needs 1
        return None
    if not scope.has_one_use(total):  # needs 2
        return None
    if added.graph is not cx.model.graph:
        return None
    names = {total.name, norm.outputs[0].name}
    return added if names & cx.hidden or _has_nameless_size(total) else None  # needs 3, keeps 1


def _has_nameless_size(value: ir.Value) -> bool:
    """True if a size of ``value`` has no name, or only one that smelt invented."""
    sizes = value.shape.dims if value.shape is not None else ()
    texts = [size.value for size in sizes if not isinstance(size, int)]
    return any(text is None or is_invented(text) for text in texts)
