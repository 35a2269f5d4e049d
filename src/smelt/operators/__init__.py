"""The operators that ONNX lacks: ``find(domain, name)``, and the list of ours.

A package adds its own through the entry point group ``smelt.operators``; each entry point names
an ``Operator`` or a sequence of them.
"""

from __future__ import annotations

from smelt.operators.registry import all_operators, find, register

__all__ = ["all_operators", "find", "register"]
