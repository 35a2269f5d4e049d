"""The test by which QR steps take an element left of the diagonal as zero, as LAPACK does."""

from __future__ import annotations

from smelt.operators.formula import Nodes, Tensor

LEAST = 2.0**-970
"""Threshold of negligible elements left of the diagonal, for a largest element near 1."""


def has_small_products(
    m: Nodes, left: Tensor, above: Tensor, here: Tensor, difference: Tensor, precision: float
) -> Tensor:
    """True where the product of two off-diagonal elements does not change the eigenvalues.

    All are magnitudes: ``left`` of ``a[r, r-1]``, ``above`` of ``a[r-1, r]``, ``here`` of ``a[r,
    r]`` and ``difference`` of ``a[r-1, r-1] - a[r, r]``. The test is

        left * above <= precision * here * difference

    with both sides divided by a sum of magnitudes, so that they do not underflow. M. Ahues and F.
    Tisseur, "A new deflation criterion for the QR algorithm", LAPACK Working Note 122.
    """
    larger_side, smaller_side = m.op("Max", left, above), m.op("Min", left, above)
    larger, smaller = m.op("Max", here, difference), m.op("Min", here, difference)
    divisor = m.where(larger + larger_side > 0.0, larger + larger_side, 1.0)
    bound = m.op("Max", LEAST, smaller * (larger / divisor) * precision)
    is_small: Tensor = smaller_side * (larger_side / divisor) <= bound
    return is_small
