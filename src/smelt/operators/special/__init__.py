"""Special functions as operators of the ``smelt`` domain, by published series and fractions.

All compute in double precision, whatever the dtype of their operands. Tables of numbers were
computed with mpmath to 60 digits and rounded once.
"""

from __future__ import annotations

from smelt.operators.special import (
    bessel,
    digamma,
    error,
    gamma,
    incomplete_beta,
    incomplete_gamma,
    trigonometric,
    zeta,
)

OPERATORS = (
    digamma.OPERATOR,
    gamma.OPERATOR,
    *bessel.OPERATORS,
    *error.OPERATORS,
    incomplete_beta.OPERATOR,
    *incomplete_gamma.OPERATORS,
    *trigonometric.OPERATORS,
    *zeta.OPERATORS,
)
