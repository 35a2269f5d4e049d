"""Tells which values are constants, and reads them.

A value is constant if it is an initializer that callers cannot override, the output of a
``Constant`` node, or derived from one through Identity, Cast, Reshape or a similar operator;
``Shape`` of a static shape is constant too. Arrays are read-only, so no rule can change a constant
that something else reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir.floats import is_close
from smelt.ir.known_forms import is_known
from smelt.ir.same_shape import static_shape
from smelt.ir.tensors.constants_on_disk import note_owned

MAX_MOVES = 16
"""Maximum number of operators, such as Identity or Reshape, between a value and its constant.

The bound keeps a chain of thousands that ends at no constant cheap. Constant folding replaces
longer chains operator by operator, so no constant is missed."""

SMALL = 64 * 1024
"""Largest constant, in bytes, that is read unless the caller asks for more."""

Array = np.ndarray


class Constants:
    """Constant values of one model, read lazily and at most once each."""

    def __init__(self) -> None:
        """Begin with empty caches: arrays by value, and the answers of ``is_number``."""
        self._known: dict[ir.Value, Array] = {}
        self._numbers: dict[tuple[ir.Value, float, int], bool] = {}

    def get(self, value: ir.Value | None, limit: int | None = SMALL) -> Array | None:
        """Return the read-only array that ``value`` holds, or None if it is no constant.

        Constants over ``limit`` bytes give None too; ``limit=None`` reads any size.
        """
        if value is None:
            return None
        known = self._known.get(value)
        if known is not None:
            return known if limit is None or known.nbytes <= limit else None
        if not may_be_constant(value):
            return None
        array = self._read(value, limit)
        if array is not None:
            array = array.view()
            array.flags.writeable = False
            if array.nbytes <= SMALL:
                self._known[value] = array
        return array

    def scalar(self, value: ir.Value | None) -> int | float | bool | None:
        """Return the element of a one-element constant as a Python number, or None for other
        values."""
        array = self.get(value)
        if array is None or array.size != 1 or array.dtype.kind not in "biufV":
            return None
        item = (
            array.reshape(()).astype(np.float64).item() if array.dtype.kind == "V" else array.item()
        )
        return item if isinstance(item, int | float | bool) else None

    def is_filled(self, value: ir.Value | None, number: float, ulp: int = 0) -> bool:
        """True if ``value`` is a constant all of whose elements are within ``ulp`` of ``number``.

        Integers must be equal. True for an empty constant and any ``number``. Answers are cached,
        because rules often ask about the same constant.
        """
        if value is None:
            return False
        key = (value, number, ulp)
        known = self._numbers.get(key)
        if known is None:
            array = self.get(value)
            if array is None:
                return False
            known = array.dtype.kind in "biufV" and _is_filled(array.reshape(-1), number, ulp)
            self._numbers[key] = known
        return known

    def is_number(self, value: ir.Value | None, number: float, ulp: int = 0) -> bool:
        """True if ``value`` is a constant of exactly one element that is within ``ulp`` of
        ``number``."""
        array = self.get(value)
        return array is not None and array.size == 1 and self.is_filled(value, number, ulp)

    def ints(self, value: ir.Value | None) -> tuple[int, ...] | None:
        """Return an integer constant as a flat tuple, or None for other values."""
        array = self.get(value)
        if array is None or array.dtype.kind not in "iu":
            return None
        return tuple(int(item) for item in array.reshape(-1))

    def _read(self, value: ir.Value, limit: int | None) -> Array | None:
        """Return the array of ``value``, computed through Identity, Cast and reshapes from a
        constant; None if it is not constant or larger than ``limit`` bytes.
        """
        moves: list[ir.Node] = []
        while (move := _movement_to(value)) is not None:
            source = move.inputs[0]
            if source is None or len(moves) == MAX_MOVES:
                return None
            moves.append(move)
            value = source
            if value in self._known:
                break
        array = self._array_of(value, limit)
        for move in reversed(moves):
            if array is None:
                return None
            array = _MOVEMENTS[move.op_type](array, move)
        return array

    def _array_of(self, value: ir.Value, limit: int | None) -> Array | None:
        """Return the array of an initializer, Constant or static Shape, or the cached array of
        ``value``; None if it is none of these or larger than ``limit`` bytes.
        """
        known = self._known.get(value)
        if known is not None:
            return known if limit is None or known.nbytes <= limit else None
        node = value.producer()
        if node is not None and node.op_type == "Shape" and not node.domain and is_known(node):
            return _static_shape(node)
        tensor = tensor_of(value)
        if tensor is None or tensor.dtype == ir.DataType.STRING:
            return None
        if limit is not None and tensor.nbytes > limit:
            return None
        array = tensor.numpy()
        note_owned(array)
        return array


def _is_filled(flat: Array, number: float, ulp: int) -> bool:
    """True if all elements of ``flat`` are within ``ulp`` of ``number``."""
    # A look at the first element answers for nearly all weights.
    if flat.size and not is_close(flat[0], number, ulp):
        return False
    return all(is_close(item, number, ulp) for item in np.unique(flat))


def tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the unread tensor of an initializer or ``Constant`` node; None for other values."""
    if value.is_graph_input():
        return None
    if value.is_initializer():
        return value.const_value
    node = value.producer()
    if node is None or node.op_type != "Constant" or node.domain:
        return None
    return _constant_tensor(node)


def may_be_constant(value: ir.Value | None) -> bool:
    """True unless ``value`` is surely not constant; costs a tenth of reading a constant."""
    if value is None:
        return False
    producer = value.producer()
    return value.is_initializer() if producer is None else producer.op_type in _HOLD_CONSTANTS


def is_constant(value: ir.Value | None) -> bool:
    """True for ``Constant`` outputs and initializers that callers cannot override, of any size."""
    return value is not None and tensor_of(value) is not None


def _constant_tensor(node: ir.Node) -> ir.TensorProtocol | None:
    """Return the tensor in the attributes of a Constant node; None for strings and sparse
    tensors."""
    for name, attr in node.attributes.items():
        if attr.is_ref():
            return None
        if name == "value" and attr.type == ir.AttributeType.TENSOR:
            # as_tensor checks the value against a protocol, which takes longer than all else here.
            tensor: ir.TensorProtocol = attr.value
            return tensor
        if name in ("value_float", "value_floats"):
            return ir.Tensor(np.asarray(attr.value, dtype=np.float32))
        if name in ("value_int", "value_ints"):
            return ir.Tensor(np.asarray(attr.value, dtype=np.int64))
    return None


def _movement_to(value: ir.Value) -> ir.Node | None:
    """Return the node that computes ``value`` by moving or casting its first operand, or None."""
    node = value.producer()
    if node is None or node.domain or node.op_type not in _MOVEMENTS or not node.inputs:
        return None
    return node if is_known(node) else None


def _identity(source: Array, node: ir.Node) -> Array | None:
    """Return ``source``, as an Identity does; a row of the table of foldable operators."""
    return source


def _cast(source: Array, node: ir.Node) -> Array | None:
    """Return ``source`` cast as the Cast ``node`` does; None if runtimes could differ on the
    result."""
    to = node.attributes.get("to")
    if to is None or to.is_ref() or source.dtype.kind not in "biuf":
        return None
    dtype = ir.DataType(to.as_int())
    floating = dtype == ir.DataType.BFLOAT16 or dtype.numpy().kind == "f"
    if dtype == ir.DataType.STRING or not (floating or dtype.numpy().kind in "biu"):
        return None
    with np.errstate(all="ignore"):
        result = source.astype(dtype.numpy())
        # Out-of-range and NaN-to-integer casts differ between runtimes, so they are not constant.
        exact = (
            floating
            or dtype == ir.DataType.BOOL
            or np.array_equal(result.astype(source.dtype), source)
        )
    return result if exact else None


def _reshape(source: Array, node: ir.Node) -> Array | None:
    """Return ``source`` in the inferred shape of the result; None if that is not static."""
    shape = static_shape(node.outputs[0])
    if shape is None or int(np.prod(shape)) != source.size:
        return None
    return source.reshape(shape)


def _static_shape(node: ir.Node) -> Array | None:
    """Return the result of the Shape ``node`` if all dims that it selects are numbers, else
    None."""
    value = node.inputs[0]
    if value is None or value.shape is None:
        return None
    start = node.attributes.get("start")
    end = node.attributes.get("end")
    dims = value.shape.dims[slice(start.as_int() if start else 0, end.as_int() if end else None)]
    if not all(isinstance(dim, int) for dim in dims):
        return None
    return np.asarray(dims, dtype=np.int64)


_MOVEMENTS: Mapping[str, Callable[[Array, ir.Node], Array | None]] = {
    "Identity": _identity,
    "Cast": _cast,
    "Reshape": _reshape,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Flatten": _reshape,
}

_HOLD_CONSTANTS = frozenset({"Constant", "Shape", *_MOVEMENTS})
"""Operators whose outputs can be constant."""
