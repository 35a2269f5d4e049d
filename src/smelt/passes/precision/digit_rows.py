"""How each ONNX operator computes with digits: one row for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import tensor_of
from smelt.ir.opset import RESHAPES
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.operators.threefry2x32 import GROUPS, PARITY, ROTATIONS
from smelt.passes.precision.digit_division import divide
from smelt.passes.precision.digit_shifts import rotated, shifted, shifted_left, shifted_right
from smelt.passes.precision.digits import BITS, INT32, Arithmetic, Digit, Word

UNSIGNED = {ir.DataType.UINT32: 2, ir.DataType.UINT64: 4}
"""The number of digits of each type."""
Result: TypeAlias = ir.Value | Word
Row: TypeAlias = Callable[["Call"], tuple[Result, ...] | None]


@dataclass
class Call:
    """A node with the words of its unsigned operands; ``math`` builds nodes in its place."""

    math: Arithmetic
    node: ir.Node
    words: Mapping[ir.Value, Word]
    bounds: IntegerBounds

    def input(self, index: int) -> ir.Value | None:
        """Return input ``index``, None if it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def word(self, index: int) -> Word:
        """Return the digits of input ``index``, which must be unsigned and present."""
        value = self.input(index)
        assert value is not None
        return self.words[value]

    @property
    def operands(self) -> list[Word]:
        """The digits of all inputs."""
        return [self.words[value] for value in self.node.inputs if value is not None]

    @property
    def digits(self) -> int:
        """The number of digits of the first result."""
        return UNSIGNED.get(self.node.outputs[0].dtype or INT32, 0)

    def each_digit(self, places: tuple[int, ...]) -> tuple[Word, ...]:
        """Return the node applied to each digit of the inputs at ``places``."""
        columns: list[list[Digit]] = [[] for _ in self.node.outputs]
        for index in range(self.digits):
            inputs, mask = list(self.node.inputs), 0
            for place in places:
                value = self.input(place)
                if value is not None:
                    digit = self.words[value][index]
                    inputs[place], mask = digit.value, mask | digit.mask
            attributes = list(self.node.attributes.values())
            count = len(self.node.outputs)
            made = ir.Node(
                self.node.domain, self.node.op_type, inputs, attributes, num_outputs=count
            )
            for column, value in zip(columns, self.math.b.add(made), strict=True):
                column.append(Digit(value, mask))
        return tuple(tuple(column) for column in columns)


def _chain(combine: Callable[[Arithmetic, Word, Word], Word]) -> Row:
    """Return the row of an operator that combines two or more operands."""
    return lambda c: (reduce(lambda x, y: combine(c.math, x, y), c.operands),)


def _compare(combine: Callable[[Arithmetic, Word, Word], ir.Value]) -> Row:
    """Return the row of a comparison of two operands."""
    return lambda c: (combine(c.math, c.word(0), c.word(1)),)


def _moves(*places: int) -> Row:
    """Return the row of an operator that moves or repeats elements of the inputs at ``places``."""
    return lambda c: c.each_digit(places)


def _concat(c: Call) -> tuple[Result, ...]:
    """Concatenate each digit."""
    return c.each_digit(tuple(range(len(c.node.inputs))))


def _pad(c: Call) -> tuple[Result, ...]:
    """Pad each digit, by 0 or the digits of the padding value."""
    return c.each_digit((0, 2))


def _scatter(c: Call) -> tuple[Result, ...] | None:
    """Scatter each digit of the updates into that of the data; None with a reduction."""
    if c.node.attributes.get_string("reduction", "none") != "none":
        return None
    return c.each_digit((0, 2))


def _size(c: Call) -> tuple[Result, ...]:
    """Return the Shape or Size of the first digit."""
    return (c.math.b.like(c.node, c.word(0)[0].value),)


def _division(place: int) -> Row:
    """Return the row of Div (``place`` 0) or Mod (1)."""
    return lambda c: (divide(c.math, c.word(0), c.word(1))[place],)


def _bitwise(c: Call) -> tuple[Result, ...]:
    """Combine the bits of two operands."""
    return (c.math.bitwise(c.node.op_type, c.word(0), c.word(1)),)


def _shift(c: Call) -> tuple[Result, ...]:
    """Shift by a constant, or by computed numbers of bits."""
    is_left = c.node.attributes.get_string("direction") == "LEFT"
    tensor = tensor_of(c.node.inputs[1]) if c.node.inputs[1] is not None else None
    if tensor is None or len(tensor.shape):
        return (shifted(c.math, c.word(0), c.word(1), left=is_left),)
    by = int(tensor.numpy())
    move = shifted_left if is_left else shifted_right
    return (move(c.math, c.word(0), by),)


def _where(c: Call) -> tuple[Result, ...]:
    """Choose each digit."""
    condition = c.input(0)
    assert condition is not None
    return (c.math.select(condition, c.word(1), c.word(2)),)


def _cast(c: Call) -> tuple[Result, ...] | None:
    """Convert between words and numbers of other types; None for a type without a conversion."""
    source, target = c.node.inputs[0], c.node.outputs[0].dtype
    if source is None or source.dtype is None or target is None:
        return None
    result: Result | None
    if target == ir.DataType.INT64 and source.dtype == ir.DataType.UINT32 and _is_ordered(c.node):
        result = c.math.b.cast(c.math.ordered(c.word(0)), target)
    elif target not in UNSIGNED:
        result = _from_word(c.math, c.word(0), target)
    elif source.dtype in UNSIGNED:
        word = c.word(0)[: c.digits]
        return ((*word, *(c.math.zero(word[0]) for _ in range(c.digits - len(word)))),)
    else:
        result = _to_word(c, source, source.dtype)
    return None if result is None else (result,)


def _is_ordered(node: ir.Node) -> bool:
    """True if all readers of the result look at the order of its numbers only, as sorts do."""
    value = node.outputs[0]
    return not value.is_graph_output() and all(
        not reader.domain
        and reader.op_type in ("ArgMax", "ArgMin", "TopK")
        and (reader.op_type != "TopK" or scope.is_dead(reader.outputs[0]))
        for reader in value.consumers()
    )


def _from_word(math: Arithmetic, word: Word, target: ir.DataType) -> ir.Value | None:
    """Return ``word`` as a number of type ``target``; None if it cannot be exact."""
    if target == INT32:
        return math.joined(word)
    if target == ir.DataType.INT64:
        fits = word[1].mask < 1 << BITS - 1 and not any(digit.mask for digit in word[2:])
        return math.b.cast(math.joined(word), target) if fits else None
    if target == ir.DataType.BOOL:
        total = reduce(lambda x, y: math.op("Add", x, y), (digit.value for digit in word))
        return math.b.cast(total, target)
    if target.is_integer():
        # The digit has all of the bits; bytes are cut off before the Cast, which need not wrap.
        low = math.remainder(word[0].value, int(min(target.bitwidth, BITS)), word[0].mask)
        return _wrapped(math, low, target)
    if target in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return math.to_float(word, target)
    if target == ir.DataType.FLOAT16:  # numbers that float32 rounds are infinite in float16
        number = math.to_float(word, ir.DataType.FLOAT)
        return None if number is None else math.b.cast(number, target)
    return None


def _wrapped(math: Arithmetic, low: Digit, target: ir.DataType) -> ir.Value:
    """Return the integer of 8 or 16 bits with the bits of ``low``, in two's complement."""
    value, top = low.value, 1 << int(target.bitwidth) - 1
    if target.is_signed() and low.mask >= top:
        sign = math.op("Div", value, top)
        value = math.op("Sub", value, math.op("Mul", sign, 2 * top))
    return math.b.cast(value, target)


def _to_word(c: Call, source: ir.Value, dtype: ir.DataType) -> Word | None:
    """Return the digits of a number; None for a type without a conversion."""
    math = c.math
    if dtype.is_integer() or dtype == ir.DataType.BOOL:
        wide = ir.DataType.INT64 if dtype == ir.DataType.INT64 else INT32
        bounds = c.bounds.of(source)
        if bounds is None or dtype.bitwidth < 8:
            return None
        return math.split(math.b.cast(source, wide), bounds, c.digits)
    if dtype == ir.DataType.FLOAT16:
        source = math.b.cast(source, ir.DataType.FLOAT)
    if source.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return math.from_float(source, c.digits) if c.digits == 2 else None
    return None


def _threefry(c: Call) -> tuple[Result, ...]:
    """Compute twenty rounds of the cipher, with rotations by constants instead of a loop."""
    math = c.math
    key0, key1, first, second = c.operands
    parity = math.constant(np.asarray(PARITY, np.uint32), 2)
    third = math.bitwise("BitwiseXor", math.bitwise("BitwiseXor", key0, key1), parity)
    keys = (key0, key1, third)
    first, second = math.add(first, key0), math.add(second, key1)
    for group in range(GROUPS):
        for bits in ROTATIONS[group % 2]:
            first = math.add(first, second)
            second = math.bitwise("BitwiseXor", rotated(math, second, bits), first)
        first = math.add(first, keys[(group + 1) % 3])
        number = math.constant(np.asarray(group + 1, np.uint32), 2)
        second = math.add(second, math.add(keys[(group + 2) % 3], number))
    return first, second


def _filled(c: Call) -> tuple[Result, ...] | None:
    """Fill each digit with that of the number."""
    filler = c.node.attributes.get("value")
    shape = c.input(0)
    if filler is None or filler.is_ref() or shape is None:
        return None
    word = c.math.constant(filler.as_tensor().numpy().reshape(()), c.digits)
    made = [c.math.op("Expand", digit.value, shape) for digit in word]
    return (tuple(map(Digit, made, (digit.mask for digit in word))),)


MOVES = (
    *RESHAPES,
    *("Transpose", "Expand", "Tile", "Slice", "Gather", "GatherElements", "GatherND", "Identity"),
    *("Split", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Trilu", "Compress"),
)
ROWS: dict[tuple[str, str], Row] = {
    **{("", name): _moves(0) for name in MOVES},
    **{("", name): _size for name in ("Shape", "Size")},
    **{("", name): _scatter for name in ("ScatterElements", "ScatterND")},
    **{("", name): _bitwise for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    ("", "Add"): _chain(Arithmetic.add),
    ("", "BitShift"): _shift,
    ("", "BitwiseNot"): lambda c: (c.math.inverted(c.word(0)),),
    ("", "Cast"): _cast,
    ("", "CastLike"): _cast,
    ("", "Concat"): _concat,
    ("", "ConstantOfShape"): _filled,
    ("", "Div"): _division(0),
    ("", "Equal"): _compare(Arithmetic.equal),
    ("", "Greater"): _compare(lambda math, x, y: math.less(y, x)),
    ("", "GreaterOrEqual"): _compare(lambda math, x, y: math.op("Not", math.less(x, y))),
    ("", "Less"): _compare(Arithmetic.less),
    ("", "LessOrEqual"): _compare(lambda math, x, y: math.op("Not", math.less(y, x))),
    ("", "Max"): _chain(lambda math, x, y: math.select(math.less(x, y), y, x)),
    ("", "Min"): _chain(lambda math, x, y: math.select(math.less(x, y), x, y)),
    ("", "Mod"): _division(1),
    ("", "Mul"): _chain(Arithmetic.multiply),
    ("", "Pad"): _pad,
    ("", "Sub"): _chain(Arithmetic.subtract),
    ("", "Where"): _where,
    ("smelt", "Threefry2x32"): _threefry,
}
"""Operator to the function that computes it; ``None`` of a row leaves the node as it is."""
