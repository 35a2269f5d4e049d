"""Lower a graph to a Program: ``lower``, and one file per family of operators.

``docs/program.md`` defines the instructions. Operators keep their ONNX names, axes count from the
front, and the constant inputs that ONNX has for axes, pads or sizes become attributes.
"""

from __future__ import annotations

from smelt.program.lower.extension import extensions_among
from smelt.program.lower.graph import lower, lower_alone
from smelt.program.lower.registry import lowered_operators

__all__ = ["extensions_among", "lower", "lower_alone", "lowered_operators"]
