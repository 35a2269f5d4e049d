"""Find how many tokens or positions a decoder knows: the rows of the table that they index."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.constants import Constants

_SAME = frozenset({"Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"})
"""Operators whose result has the numbers of their first operand."""


def rows_read_by(model: ir.Model, name: str) -> int | None:
    """Return how many numbers from 0 on the input ``name`` may have, None if it is not known.

    They are the rows of the table that a Gather reads by them, less a constant that an Add adds.
    """
    constants = Constants()
    reached = [(value, 0) for value in model.graph.inputs if value.name == name]
    rows: list[int] = []
    for value, offset in reached:  # grows by values with the same numbers, or shifted ones
        for node, index in value.uses():
            if node.domain:
                continue
            if node.op_type in _SAME and index == 0:
                reached.append((node.outputs[0], offset))
            elif node.op_type == "Add":
                added = constants.get(node.inputs[1 - index], None)
                if added is not None and added.size == 1:
                    reached.append((node.outputs[0], offset + int(added.item())))
            elif node.op_type == "Gather" and index == 1:
                table = node.inputs[0]
                dim = None if table is None or not table.shape else table.shape[0]
                if isinstance(dim, int) and not node.attributes.get_int("axis", 0):
                    rows.append(dim - offset)
    return min(rows, default=None)
