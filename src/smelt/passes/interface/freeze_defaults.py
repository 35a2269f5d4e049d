"""Turn inputs with default values into constants that callers cannot override.

    before   (x, w = {1, 2}) => Mul(x, w)        after   (x) => Mul(x, {1, 2})

Needs    (1) an explicit request, because it removes inputs. Some exporters list all weights as
         inputs, and such models can hardly be optimized otherwise.
Keeps    (1) inputs without a default, and inputs that are also outputs.
"""

from __future__ import annotations

from smelt.ir.defaults import META_KEY, default_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@graph_pass("freeze_defaults", __doc__, exactness=EXACT, default=False)  # needs 1
def freeze_defaults(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace each input that has a default by an initializer, and infer the shapes again."""
    graph = cx.model.graph
    # keeps 1
    frozen = [v for v in graph.inputs if default_of(v) is not None and not v.is_graph_output()]
    for value in frozen:
        value.const_value = default_of(value)
        value.meta.pop(META_KEY, None)
    kept_inputs = [value for value in graph.inputs if value not in set(frozen)]
    graph.inputs[:] = kept_inputs
    for value in frozen:
        graph.register_initializer(value)
        stats.fired["default frozen"] += 1
        rewriter.count += 1
    if frozen:
        cx.shapes.redeclare_interface()
        cx.shapes.infer_model()
