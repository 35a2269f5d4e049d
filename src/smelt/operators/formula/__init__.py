"""Numeric formulas, written once: for NumPy, for ONNX nodes, and for targets that generate code.

A formula is a function ``(m, *numbers)``. It computes with the operators of Python and with the
functions of the arithmetic ``m``: ``Arrays`` for NumPy arrays, ``Nodes`` for values of a graph, or
a target's own subclass of ``Arithmetic``. So the reference of an operator, its ONNX body and its
kernels cannot differ.
"""

from __future__ import annotations

from smelt.operators.formula.arrays import Arrays
from smelt.operators.formula.elementwise import Elementwise, elementwise
from smelt.operators.formula.nodes import Nodes, Tensor
from smelt.operators.formula.symbolic import Symbol
from smelt.operators.numeric import Arithmetic, Number

__all__ = [
    "Arithmetic",
    "Arrays",
    "Elementwise",
    "Nodes",
    "Number",
    "Symbol",
    "Tensor",
    "elementwise",
]
