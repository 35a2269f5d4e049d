"""The limits of a target, in its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir


@dataclass(frozen=True)
class Limits:
    """What a target supports.

    ``dtypes``: element types, None for all; an option of the target adds those of its property
    ``further_types``. ``interface_dtypes``: further types of inputs and outputs. ``remedies``: what
    to do about other types. ``dynamic_dims``: symbolic dims may survive to run time;
    ``why_fixed`` says why they may not. ``bounded_dims``: memory is planned for symbolic dims with
    declared bounds (``smelt.ir.bounds``). ``max_rank``: the most dims of a value, None for any.
    ``empty_tensors``: a dim of a value may be 0. ``opset``: lowest and highest ONNX opset.
    ``operators``: the ``(domain, op_type)`` that it runs after selection, None for all.
    """

    dtypes: frozenset[ir.DataType] | None = None
    interface_dtypes: frozenset[ir.DataType] = frozenset()
    dynamic_dims: bool = True
    bounded_dims: bool = False
    why_fixed: str = "it plans all memory before it runs"
    max_rank: int | None = None
    empty_tensors: bool = True
    opset: tuple[int, int] = (1, 10**6)
    operators: frozenset[tuple[str, str]] | None = None
    remedies: Mapping[ir.DataType, str] = field(default_factory=dict)


NO_LIMITS = Limits()
"""The limits of a target that declares none."""
