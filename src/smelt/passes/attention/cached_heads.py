"""The rule that moves the split of heads into an ``Attention`` with past keys and values."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import only_reader, producer_of
from smelt.passes.layout.merge_consecutive_transposes import permutation

_HEADS_AND_ROWS = (0, 2, 1, 3)


@rule(op("Attention", var("q"), var("k"), var("v"), rest=True))
def cached_heads(m: Match, b: Builder) -> Replacement:
    """Give an Attention with a past operands and a result B,S,H*D and the attribute
    ``q_num_heads``.

    Past and present keys and values keep B,H,S,D.
    """
    node = m.root
    if len(node.outputs) != 3 or "q_num_heads" in node.attributes:
        return None
    operands = [m[name] for name in ("q", "k", "v")]
    shapes = [value.shape for value in operands]
    known_shapes = [shape for shape in shapes if shape is not None and len(shape) == 4]
    sizes = [(shape[1], shape[3]) for shape in known_shapes]
    heads = [head for head, _ in sizes if isinstance(head, int)]
    widths = [width for _, width in sizes if isinstance(width, int)]
    if len(heads) < 3:
        return Miss("the head count is not constant")
    if len(widths) < 3:
        return Miss("the head size is not constant")
    if heads[1] != heads[2]:
        return Miss("keys and values have different head counts")
    one_position = all(shape[2] == 1 for shape in known_shapes)
    are_split = all(_splits_heads(value, one_position) for value in operands)
    if not are_split:
        return Miss("queries, keys or values are not split into heads before the attention")
    if not _merges_heads(node.outputs[0], one_position):
        return Miss("the heads of the result are not merged after the attention")
    rows = [
        _merged_heads(value, heads[i] * widths[i], one_position, b)
        for i, value in enumerate(operands)
    ]
    head_counts = [ir.AttrInt64("q_num_heads", heads[0]), ir.AttrInt64("kv_num_heads", heads[1])]
    inputs = [*rows, *node.inputs[3:]]
    attributes = [*node.attributes.values(), *head_counts]
    y, *present = b.add(ir.Node("", "Attention", inputs, attributes, num_outputs=3))
    if one_position:
        return (b.op("Reshape", y, b.const_i64([0, heads[0], 1, widths[2]])), *present)
    split_heads = b.op("Reshape", y, b.const_i64([0, 0, heads[0], widths[2]]))
    return (b.op("Transpose", split_heads, perm=_HEADS_AND_ROWS), *present)


def _merges_heads(y: ir.Value, one_position: bool) -> bool:
    """True if the only reader merges the heads: a Transpose, or a Reshape for one position."""
    reader = only_reader(y, "Reshape" if one_position else "Transpose")
    return reader is not None and (one_position or permutation(reader) == _HEADS_AND_ROWS)


def _splits_heads(value: ir.Value, one_position: bool) -> bool:
    """True if ``value`` is made by splitting heads: a Transpose, or a Reshape for one position."""
    node = producer_of(value, "Reshape" if one_position else "Transpose")
    return node is not None and (one_position or permutation(node) == _HEADS_AND_ROWS)


def _merged_heads(value: ir.Value, width: int, one_position: bool, b: Builder) -> ir.Value:
    """Return the operand as B,S,H*D."""
    if one_position:
        return b.op("Reshape", value, b.const_i64([0, 1, width]))
    node = producer_of(value, "Transpose")
    assert node is not None
    return b.op("Reshape", node.inputs[0], b.const_i64([0, 0, width]))
