"""Rows of exponentials, logarithms, angles and the error function, as libraries approximate
them."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.operators import numeric
from smelt.operators.elementwise.row import Row
from smelt.operators.numeric import Number


def erf(x: Any) -> Any:
    """Return the error function of an array."""
    from scipy.special import erf as computed

    return np.asarray(computed(x))


def erfc(x: Any) -> Any:
    """Return the complementary error function of an array."""
    from scipy.special import erfc as computed

    return np.asarray(computed(x))


def _fmod(m: Any, x: Number, y: Number) -> Number:
    """Build Mod with ``fmod=1``."""
    return m.op("Mod", x, y, fmod=1)


def _function(name: str, array: Any, **facts: Any) -> Row:
    """Return the row of a function that math.h and JAX call by the lower-case name."""
    lower = name.lower()
    return Row(name, array=array, floats=f"{lower}@f({{0}})", primitive=lower, **facts)


ROWS = (
    _function("Acos", np.arccos),
    _function("Acosh", np.arccosh),
    _function("Asin", np.arcsin),
    _function("Asinh", np.arcsinh),
    _function("Atan", np.arctan),
    _function("Atanh", np.arctanh),
    _function("Cos", np.cos),
    _function("Cosh", np.cosh),
    _function("Erf", erf),
    _function("Exp", np.exp),
    _function("Log", np.log),
    _function("Sin", np.sin),
    _function("Sinh", np.sinh),
    _function("Tan", np.tan),
    _function("Tanh", np.tanh),
)

WITHIN_FORMULAS = (
    Row("Expm1", array=np.expm1, floats="expm1@f({0})", formula=numeric.expm1),
    Row("Fmod", operands=2, array=np.fmod, floats="fmod@f({0}, {1})", formula=_fmod),
    Row("Log1p", array=np.log1p, floats="log1p@f({0})", formula=numeric.log1p),
)
"""Functions of NumPy and C that ONNX lacks: formulas that become nodes expand them."""
