"""One row per elementwise operator, from which arrays, ONNX nodes and C are derived.

A row defines the operator either by a ``formula`` of other operators, or by its NumPy function
(``array``) and its C expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, TypeAlias

from smelt.operators.numeric import Number

Formula: TypeAlias = Callable[..., Number]
"""``(m, *operands, **attributes)``: returns the result, by the functions of the arithmetic
``m``."""


class Rounding(Enum):
    """How far the results of correct kernels may differ."""

    EXACT = "no rounding"
    PRODUCT = "one rounding of a sum or product, which is exact for small integers"
    ONCE = "one rounding of a quotient or root, as IEEE 754 defines it"
    FREE = "any approximation, and any order of operations"


@dataclass(frozen=True, slots=True)
class Row:
    """One elementwise operator.

    ``operands``: the number of tensors, None for any number. ``primitive``: the JAX primitive that
    is this operator. ``is_test``: results are booleans. ``commutative``: operands may be exchanged.

    C expressions by the kind of the first element, empty where there is none: ``{0}`` ``{1}``
    ``{2}`` are the elements read, ``@t`` the C type of the first, ``@m`` the unsigned type in which
    its sums wrap, ``@f`` the suffix of its functions in math.h (``expf``). ``unsigned`` replaces
    ``integers`` for unsigned types, since compilers warn about comparing them with 0.

    NaN propagates wherever it does in ONNX Runtime and NumPy.
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
        """Return the operator's name in a Program."""
        return f"{self.domain}::{self.name}" if self.domain else self.name
