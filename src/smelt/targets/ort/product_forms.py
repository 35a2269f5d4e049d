"""Forms of matrix products: the operators by which `ort` may replace them, where faster."""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.targets.ort import choices
from smelt.targets.ort.form import Form, Sizes, number


def _fused_mat_mul(m: Match, b: Builder) -> Replacement:
    """Build a FusedMatMul; a Miss if the Transpose moves more than the last two axes."""
    perm = m.node("moved").attributes["perm"].as_ints()
    rank = len(perm)
    if rank < 3 or list(perm) != [*range(rank - 2), rank - 1, rank - 2]:
        swaps = "perm of the Transpose does not swap the last two axes alone"
        return Miss("the rank is below 3" if rank < 3 else swaps)
    product = b.op("FusedMatMul", m["a"], m["k"], domain=DOMAIN, transB=1)
    # Keep the MatMul's shape: FusedMatMul's inference may pick the wrong symbol of a broadcast dim.
    product.shape = m.root.outputs[0].shape
    return product


def _transposed_sizes(m: Match) -> Sizes | Miss:
    """Return rows, inner size and columns of a product with a transposed right side, or a Miss."""
    a, k = m["a"].shape, m["k"].shape
    if a is None or k is None or len(a) < 2 or len(k) < 2:
        return Miss("the operands are not known to have rank 2 or more")
    return {"rows": number(a[-2]), "inner": number(a[-1]), "columns": number(k[-2])}


_transpose = op("MatMul", var("a"), op("Transpose", var("k"), name="moved"))

FORMS = (
    Form(choices.TRANSPOSED_PRODUCT, "FusedMatMul", _transpose, _transposed_sizes, _fused_mat_mul),
)
