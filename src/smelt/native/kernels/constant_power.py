"""Powers whose exponent is one number that is known, where multiplications or a root are it."""

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
"""As C in an element; the root of -0 is -0, but its power is 0, and that of -inf is inf."""


def power_text(instance: Instance) -> str:
    """The expression of a Pow of floats, empty if its exponent is no such number."""
    exponent = instance.program.constants.get(instance.instruction.inputs[1])
    if exponent is None or exponent.size != 1:
        return ""
    return TEXTS.get(float(exponent.reshape(-1)[0]), "")
