"""Pow with a constant exponent, by multiplications or a square root."""

from __future__ import annotations

from smelt.native.kernels.instance import Instance

ROOT = "({0} == -INFINITY ? INFINITY : sqrt@f({0} + 0))"
TEXTS = {
    -1.0: "1 / {0}",
    0.5: ROOT,
    -0.5: f"1 / {ROOT}",
    2.0: "{0} * {0}",
    3.0: "{0} * {0} * {0}",
    4.0: "({0} * {0}) * ({0} * {0})",
}
"""C expressions of an element. sqrt(-0) is -0 but pow(-0, 0.5) is 0, and pow(-inf, 0.5) is inf."""


def power_text(instance: Instance) -> str:
    """Return the C of a float Pow whose exponent is constant: a product for a square.

    "" if the exponent is computed, is not one number, or is absent from ``TEXTS``.
    """
    exponent = instance.program.constants.get(instance.instruction.inputs[1])
    if exponent is None or exponent.size != 1:
        return ""
    return TEXTS.get(float(exponent.reshape(-1)[0]), "")
