"""Replace equal Transposes of all parts of a Split by one Transpose before it.

    before   x ─> MatMul(W) ─> Add(row) ─> Split ─> Transpose(p) each ─> q, k, v
    after    x ─> Transpose(p) ─> MatMul(W) ─> Add(row) ─> Split ─> q, k, v

Queries, keys and values are such parts if the sequence comes before the batch, as in PyTorch's
``nn.MultiheadAttention``. The Transpose also moves before a product and the sum behind it, if it
moves no more elements there.

Needs    (1) the same permutation for all parts, each of which is read; (2) for a product, a right
         matrix with at least as many columns as rows, and a permutation that keeps the last axis;
         (3) for a sum, another operand of rank 0 or 1.
Keeps    (1) a part that is an output or has a reader other than a Transpose; (2) products and sums
         that have other readers or are outputs.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Rewriter
from smelt.ir.same_shape import static_shape
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass
from smelt.passes.layout.commuted import Perm, inverse, is_identity
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.layout.reduce_transposes import OTHER_PLACES
from smelt.passes.layout.transposed_ops import commute

PARTS, PRODUCT = "parts", "parts of a product"


@graph_pass(
    "hoist_transposes",
    __doc__,
    exactness=OTHER_PLACES,
    declares=lambda options, stats: OTHER_PLACES if PRODUCT in stats.fired else EXACT,
    after=("reduce_transposes",),
)
def hoist_transposes(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Hoist the Transposes of each Split whose parts all have the same permutation."""
    if not cx.index().has("Transpose"):
        return
    for split in cx.index().nodes([("", "Split")]):
        if rewriter.exhausted:
            break
        perm = _permutation_of_parts(split)
        if perm is not None:
            chain = _product_and_sum(split, perm)
            _hoist(split, chain, perm, cx.constants, rewriter)
            products = any(node.op_type == "MatMul" for node in chain)
            stats.fired[PRODUCT if products else PARTS] += 1


def _permutation_of_parts(split: ir.Node) -> Perm | None:
    """Return the permutation by which every part of ``split`` is transposed, or None."""
    source = split.inputs[0]
    if not is_known(split) or source is None or source.shape is None or len(split.outputs) < 2:
        return None
    perms = set()
    for part in split.outputs:
        readers = scope.consumers(part)
        if part.is_graph_output() or not readers:  # keeps 1, needs 1
            return None
        for reader in readers:
            if (reader.domain, reader.op_type) != ("", "Transpose") or not is_known(reader):
                return None  # keeps 1
            if reader.graph is not split.graph:
                return None
            perms.add(permutation(reader))
    perm = perms.pop()
    if perms or perm is None or is_identity(perm):  # needs 1
        return None
    return perm


def _product_and_sum(split: ir.Node, perm: Perm) -> list[ir.Node]:
    """Return the product before ``split`` and the sum behind the product, in order.

    The Transpose can move before them. The list is empty if that gains nothing.
    """
    chain: list[ir.Node] = []
    value = split.inputs[0]
    while value is not None and perm[-1] == len(perm) - 1:
        node = value.producer()
        has_one_reader = scope.has_one_use(value) and not value.is_graph_output()  # keeps 2
        if (
            node is None
            or not has_one_reader
            or node.graph is not split.graph
            or not is_known(node)
        ):
            break
        value = _transposable_operand(node)
        if value is not None:
            chain.insert(0, node)
    while chain and chain[0].op_type == "Add":  # moving before a sum gains nothing
        chain.pop(0)
    return chain


def _transposable_operand(node: ir.Node) -> ir.Value | None:
    """Return the operand of ``node`` that can be transposed instead of its result, else None."""
    if node.domain or node.op_type not in ("Add", "MatMul"):
        return None
    first, second = node.inputs
    if first is None or second is None or first.shape is None or second.shape is None:
        return None
    if node.op_type == "MatMul":  # needs 2
        sizes = static_shape(second)
        return first if sizes is not None and len(sizes) == 2 and sizes[0] <= sizes[1] else None
    if len(second.shape) <= 1 < len(first.shape):  # needs 3
        return first
    return second if len(first.shape) <= 1 < len(second.shape) else None


def _hoist(
    split: ir.Node, chain: list[ir.Node], perm: Perm, constants: Constants, rewriter: Rewriter
) -> None:
    """Rebuild ``chain`` and ``split`` on a transposed operand; new parts replace the Transposes."""
    readers = [reader for part in split.outputs for reader in scope.consumers(part)]
    b = rewriter.builder(split, [*chain, split, *readers], "hoist_transposes")
    top = _transposable_operand(chain[0]) if chain else split.inputs[0]
    assert top is not None
    new_values: dict[ir.Value, ir.Value] = {top: b.op("Transpose", top, perm=perm)}
    for node in [*chain, split]:  # old values are Transposes of the new ones, by the inverse
        commuted = commute(node, dict.fromkeys(new_values, inverse(perm)), constants)
        assert commuted is not None
        operands = [value and new_values.get(value, value) for value in node.inputs]
        new_values = dict(zip(node.outputs, commuted.build(b, operands), strict=True))
    for part, new_part in new_values.items():
        for reader in scope.consumers(part):
            if rewriter.exhausted:
                return
            rewriter.replace(reader, (new_part,), trust_shape=True)
