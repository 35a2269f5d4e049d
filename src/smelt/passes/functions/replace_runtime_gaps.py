"""Replace operators that ONNX Runtime lacks or computes wrong by standard operators.

    before   Max(a: int64, b: int64) ─> y
    after    Where(Greater(a, b), a, b) ─> y

``runtime_gaps.py`` and ``runtime_defects.py`` in ``operators/onnxruntime`` list operators of ONNX
by element type. Declared operators of other domains, such as ``smelt.Cholesky``, become the nodes
of their bodies: some readers of ONNX files take no model-local functions. The pass runs after every
pipeline of ``optimize`` and of the targets ``onnx`` and ``ort``, before the model is written.

``functions=true`` keeps the declared operators; each is then written as a call of an ONNX function.
The targets ``c`` and ``host`` have kernels for many of them. ``source=true`` also replaces
operators of the source model that ONNX Runtime computes wrong; ``--for onnxruntime`` sets it.

Needs    (1) known element types, and for declared operators known ranks; (2) for integer operators
         that are wrong for large numbers, integers that may be large; (3) a body of ONNX operators.
Keeps    (1) without ``source=true``, operators of the source model that ONNX Runtime computes
         wrong; (2) operators for which the target or its runtime has kernels; (3) with
         ``functions=true``, all declared operators.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.operators import all_operators
from smelt.operators.expand import expand_in_line
from smelt.passes.base import PassContext, graph_pass, rounding

NAME = "replace_runtime_gaps"


@dataclass(frozen=True)
class Form:
    """``functions``: keep declared operators, which are written as calls of ONNX functions.

    ``source``: also replace operators of the source model that ONNX Runtime computes wrong.
    """

    functions: bool = False
    source: bool = False


@graph_pass(
    NAME,
    __doc__,
    exactness=rounding(64, "a body rounds after each of its operators"),
    default=False,
    options_type=Form,
)
def replace_runtime_gaps(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Form
) -> None:
    """Replace operators that runtimes lack or compute wrong, in all graphs."""
    kept = cx.operators
    if options.functions:  # keeps 3
        kept = frozenset(operator.key for operator in all_operators())
    graphs = cx.index().graphs
    of_source = options.source
    expand_in_line(  # needs 1, 2, 3, keeps 1, 2
        rewriter, stats, NAME, graphs, kept, of_source=of_source
    )
    if rewriter.count:  # values in loops of bodies have no sizes yet
        rewriter.flush()
        cx.shapes.infer_model()
