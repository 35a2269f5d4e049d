"""Numeric formulas, written once and read twice: by NumPy, and as ONNX nodes.

A formula is a function ``(m, *numbers)``. It computes with the operators of Python and with the
functions of the arithmetic ``m``: ``Arrays`` for NumPy arrays, ``Nodes`` for values of a graph.
So the reference of an operator and its ONNX body cannot drift apart.
"""

from __future__ import annotations

from smelt.operators.formula.arrays import Arrays
from smelt.operators.formula.elementwise import elementwise
from smelt.operators.formula.nodes import Nodes, Tensor
from smelt.operators.formula.numeric import Arithmetic, Number

__all__ = ["Arithmetic", "Arrays", "Nodes", "Number", "Tensor", "elementwise"]
