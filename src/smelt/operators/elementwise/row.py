"""What is known of an elementwise operator: one row, read as arrays, as ONNX nodes and as C.

A row says what it computes either by a ``formula`` of other operators, from which all readers
derive, or by what NumPy (``array``) and C have for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, TypeAlias

from smelt.operators.numeric import Number

Formula: TypeAlias = Callable[..., Number]
"""``(m, *operands, **attributes)``: the result, by the functions of the arithmetic ``m``."""


class Rounding(Enum):
    """How far results may differ between kernels that are all right."""

    EXACT = "nothing is rounded"
    PRODUCT = "sums and products, rounded once; of small integers they are exact"
    ONCE = "a quotient or a root, rounded once as IEEE 754 says"
    FREE = "as each library approximates it, or in the order that it likes"


@dataclass(frozen=True, slots=True)
class Row:
    """One elementwise operator.

    ``operands``: how many tensors it takes, None for as many as are given. ``primitive``: that of
    JAX which is this operator. ``is_test``: whether results are true or false. ``commutative``:
    operands may change places.

    Expressions of C by the kind of the first element, empty where there is none: ``{0}`` ``{1}``
    ``{2}`` are the elements read, ``@t`` the C type of the first, ``@m`` the unsigned type in which
    its sums wrap, ``@f`` the suffix of its functions in math.h (``expf``). ``unsigned`` stands for
    ``integers`` where a value is never negative, since compilers warn about comparing it with 0.
    NaN goes through wherever ONNX Runtime and NumPy let it through.
    """

    name: str
    _: KW_ONLY
    domain: str = ""
    operands: int | None = 1
    formula: Formula | None = None
    array: Callable[..., Any] | None = None
    floats: str = ""
    integers: str = ""
    unsigned: str = ""
    booleans: str = ""
    rounding: Rounding = Rounding.FREE
    commutative: bool = False
    is_test: bool = False
    primitive: str = ""

    @property
    def instruction(self) -> str:
        """What a Program calls it."""
        return f"{self.domain}::{self.name}" if self.domain else self.name
