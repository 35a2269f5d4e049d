"""Recognize the causal mask: 0 up to the query's own key, a very negative number after it.

The reader follows what exporters write: comparisons of positions, however these are computed
(``ir/value_facts/affine_proof.py``), Trilu, boolean operators and casts, and the constant arrays
into which these are folded.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.node_inputs import optional_input
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.symbolic_dims.clamped_dims import equal_if_broadcast
from smelt.ir.value_facts.affine_proof import AffineProof
from smelt.ir.walk import producer_of
from smelt.passes.attention import triangle_cells
from smelt.passes.attention.triangle_cells import COLUMNS, ROWS, Cells

LOW = -1e30
"""A bias so low that adding a score to it changes nothing, because scores are far smaller."""

FLOOR = -3.4e38
"""Lower limit of a bias, just above the lowest float. Where a whole row has the lowest float, ONNX
Runtime returns zeros; a softmax returns the average of the values."""

LIMIT = 64
"""Limit of values to read before a mask is given up; masks consist of few nodes."""

_MOVES = frozenset({"Identity", "Unsqueeze", "Squeeze", "Reshape", "Expand"})


def is_causal(bias: ir.Value, size: Dim, constants: Constants) -> bool | None:
    """True if ``bias`` is the causal mask of ``size`` queries.

    None if it is not a triangle of the form "0 up to the diagonal, a number after it" at all.
    """
    reader = _Reader(size, constants)
    if not reader.is_square(bias.shape):
        return None
    array = constants.get(bias, None)
    if array is not None and array.size > 1:
        return _is_causal_array(array)
    cells = reader.read(bias)
    if cells is None:
        return None
    seen, hidden = cells.numbers[:2], cells.numbers[2]
    if size == 1:
        return bool(seen[1] == 0)
    return not seen.any() and bool(np.isfinite(hidden) and hidden <= LOW)


def on_diagonal(mask: ir.Value, size: Dim, constants: Constants) -> bool | None:
    """Return the boolean that a square ``mask`` has on its whole diagonal; None if unknown."""
    reader = _Reader(size, constants)
    cells = reader.read(mask) if reader.is_square(mask.shape) else None
    return None if cells is None or cells.are_positions else bool(cells.numbers[1])


def _is_causal_array(array: np.ndarray) -> bool | None:
    """True if a constant is the causal mask; None if its last row already hides a key."""
    if array[..., -1, :].any():
        return None
    seen = np.tri(array.shape[-1], dtype=np.bool_)
    if array[..., seen].any():
        return False
    hidden = array[..., ~seen]
    return bool(np.isfinite(hidden).all() and (hidden <= LOW).all())


class _Reader:
    """Reads values that broadcast to ``size`` x ``size`` as cells (see ``triangle_cells.py``)."""

    def __init__(self, size: Dim, constants: Constants) -> None:
        """Read masks of ``size`` queries and keys; ``known`` caches what each value holds."""
        self.size = size
        self.constants = constants
        self.proof = AffineProof(constants)
        self.known: dict[ir.Value, Cells | None] = {}

    def read(self, value: ir.Value | None) -> Cells | None:
        """Return the cells of ``value``; None if an element depends on more than its side of the
        diagonal."""
        if value is None or (value not in self.known and len(self.known) == LIMIT):
            return None
        if value not in self.known:
            self.known[value] = None
            cells = self._constant(value) or self._positions(value)
            self.known[value] = cells if cells is not None else self._computed(value)
        return self.known[value]

    def is_square(self, shape: ir.Shape | None) -> bool:
        """True if the last two dims equal ``size``."""
        if shape is None or len(shape) < 2:
            return False
        return all(equal_if_broadcast(dim, self.size) for dim in shape.dims[-2:])

    def _positions_along_axis(self, shape: ir.Shape | None) -> Cells | None:
        """Return the cells of row or column positions, whichever axis of ``shape`` has ``size``
        elements; None if neither does.
        """
        if shape is None or not len(shape) or any(dim != 1 for dim in shape.dims[:-2]):
            return None
        if equal_if_broadcast(shape[-1], self.size) and (len(shape) == 1 or shape[-2] == 1):
            return Cells(COLUMNS, are_positions=True)
        if len(shape) > 1 and shape[-1] == 1 and equal_if_broadcast(shape[-2], self.size):
            return Cells(ROWS, are_positions=True)
        return None

    def _constant(self, value: ir.Value) -> Cells | None:
        """Return the cells of a constant: one number, positions 0, 1, ..., or a triangle; else
        None.
        """
        line, square = self._positions_along_axis(value.shape), self.is_square(value.shape)
        array = self.constants.get(value, None) if line or square else self.constants.get(value)
        if array is None or array.dtype.kind not in "biuf":
            return None
        if array.size == 1:
            return triangle_cells.uniform(array)
        if line is not None:
            return line if np.array_equal(array.ravel(), np.arange(array.size)) else None
        return triangle_cells.triangles(array) if square and array.size else None

    def _positions(self, value: ir.Value) -> Cells | None:
        """Return the cells of one integer everywhere, or of the row or column position; else
        None.
        """
        form = self.proof.of(value)
        if form is None or value.shape is None or value.dtype is None:
            return None
        if form.is_uniform:
            return triangle_cells.uniform(np.asarray(form.start, value.dtype.numpy()))
        row_step, column_step = (0, *form.steps)[-2:]
        other_steps = form.steps[:-2]
        if form.start or any(other_steps) or (row_step, column_step) not in ((0, 1), (1, 0)):
            return None  # the elements are not 0, 1, ... along one of the last two axes
        axis, positions = (-1, COLUMNS) if column_step else (-2, ROWS)
        fits = same_dim(value.shape[axis], self.size)
        return Cells(positions, are_positions=True) if fits else None

    def _computed(self, value: ir.Value) -> Cells | None:
        """Return the cells of a computed value from its operator and operands; None if they have
        none.
        """
        node = value.producer()
        if node is None or node.domain or not is_known(node):
            return None
        if node.op_type == "ConstantOfShape":
            filled = node.attributes.get("value")
            number = np.float32(0) if filled is None else filled.as_tensor().numpy()
            return triangle_cells.uniform(number)
        if node.op_type == "Trilu":
            return self._trilu(node)
        if node.op_type == "Slice":
            return self._first_rows_and_columns(value)
        if node.op_type in _MOVES or node.op_type == "Cast":
            cells = self.read(node.inputs[0])
            if cells is None or node.op_type != "Cast":
                return cells and self._moved_cells(cells, node.inputs[0], value)  # None stays None
            return triangle_cells.cast(cells, value.dtype)
        return self._elementwise(node)

    def _elementwise(self, node: ir.Node) -> Cells | None:
        """Return the cells of an elementwise operator whose operands all have cells; else None."""
        if node.op_type not in triangle_cells.ELEMENTWISE:
            return None
        operand_cells: list[Cells] = []
        for value in node.inputs:
            cells = self.read(value)
            if cells is None:
                return None
            operand_cells.append(cells)
        return triangle_cells.elementwise(node.op_type, operand_cells) if operand_cells else None

    def _trilu(self, node: ir.Node) -> Cells | None:
        """Return the cells of a Trilu with a constant offset; else None."""
        cells = self.read(node.inputs[0]) if self.is_square(node.outputs[0].shape) else None
        offset = optional_input(node, 1)
        k = 0 if offset is None else self.constants.scalar(offset)
        if cells is None or not isinstance(k, int):
            return None
        upper = node.attributes.get("upper")
        return triangle_cells.trilu(cells, upper is None or bool(upper.as_int()), k)

    def _first_rows_and_columns(self, value: ir.Value) -> Cells | None:
        """Return the cells of a causal buffer cut to its first rows and columns by Slices; else
        None.

        A Slice from index 0 with step 1 and a result of this size can read no other elements.
        """
        if not self.is_square(value.shape):
            return None
        root: ir.Value | None = value
        while (node := producer_of(root, "Slice")) is not None:
            if not self._is_from_first(node):
                return None
            root = node.inputs[0]
        array = self.constants.get(root, None)
        if array is None or array.ndim < 2 or array.size < 2 or array.dtype.kind not in "biuf":
            return None
        rows, columns = array.shape[-2:]
        return triangle_cells.triangles(array) if rows == columns and rows > 1 else None

    def _is_from_first(self, node: ir.Node) -> bool:
        """True if a Slice has constant starts of 0 and steps of 1."""
        starts = self.constants.ints(node.inputs[1])
        steps_input = optional_input(node, 4)
        steps = () if steps_input is None else self.constants.ints(steps_input)
        return starts is not None and not any(starts) and steps is not None and set(steps) <= {1}

    def _moved_cells(self, cells: Cells, data: ir.Value | None, result: ir.Value) -> Cells | None:
        """Return the ``cells`` of ``data`` as those of ``result``, which expands or reshapes it;
        None if unknown.
        """
        if cells.is_uniform:
            return cells
        if self.is_square(result.shape):
            keeps_positions = cells.are_positions or (
                data is not None and self.is_square(data.shape)
            )
            return cells if keeps_positions else None
        return self._positions_along_axis(result.shape) if cells.are_positions else None
