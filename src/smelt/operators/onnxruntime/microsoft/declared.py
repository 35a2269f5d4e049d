"""Functions that declare operators of ``com.microsoft``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from smelt.operators.declare import Attribute, Attributes, Operator, Result
from smelt.operators.inputs import first

DOMAIN = "com.microsoft"
RUNTIME = "ONNX Runtime"

Values = Sequence["ir.Value | None"]


def operator(name: str, summary: str, **fields: Any) -> Operator:
    """Return an operator of the domain; ``fields`` are further fields of ``Operator``."""
    return Operator(domain=DOMAIN, runtime=RUNTIME, name=name, summary=summary, **fields)


def ints(**defaults: int | None) -> tuple[Attribute, ...]:
    """Return integer attributes; those without a default are required."""
    kind = ir.AttributeType.INT
    return tuple(Attribute(name, kind, v, required=v is None) for name, v in defaults.items())


def floats(**defaults: float | None) -> tuple[Attribute, ...]:
    """Return float attributes, none of them required."""
    return tuple(Attribute(name, ir.AttributeType.FLOAT, v) for name, v in defaults.items())


def like_first(results: int = 1) -> Callable[[Values, Attributes], Sequence[Result]]:
    """Return a shape rule: every result has the type of the first input."""

    def infer(inputs: Values, attributes: Attributes) -> Sequence[Result]:
        """Return the type of the first input for each result."""
        x = first(inputs)
        return (Result(x.dtype, x.shape),) * results

    return infer
