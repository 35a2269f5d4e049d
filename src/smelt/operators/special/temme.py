"""Temme's uniform expansion of the incomplete gamma functions, for large a and x near a.

N. Temme, "The asymptotic expansion of the incomplete gamma functions" (1979); DLMF 8.12.3 and
8.12.7. With ``mu = x / a - 1`` and ``eta * eta / 2 = mu - log(1 + mu)``, the upper function is
``erfc(eta sqrt(a / 2)) / 2 + density * sum(C[k](eta) a ** -k)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.operators.formula import Arithmetic, Number
from smelt.operators.numeric import log1p_less_x, polynomial

MU = (
    1.0, 0.3333333333333333, 0.027777777777777776, -0.003703703703703704,
    0.0002314814814814815, 5.878894767783657e-05, -2.553644914756026e-05,
    4.899078973153047e-06, -2.428276122977769e-07, -1.85406221071516e-07,
    7.542464855411896e-08, -1.47216272806884e-08, 5.159887341078076e-10, 7.32986413160022e-10,
    -2.921357345635569e-10, 5.717312238897994e-11,
)  # fmt: skip
"""``mu / eta`` in eta."""

ROWS = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
        0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
        -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
        -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
        -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
        -5.830772132550426e-11,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
        -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
        -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
        4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
        1.1951628599778148e-08,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
        2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
        -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
        -6.298992138380055e-07, 1.4280614206064242e-07,
    ),
    (
        0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
        0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
        1.1082654115347302e-05,
    ),
    (
        -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
    ),
)  # fmt: skip
"""``C[k]`` in eta: DLMF 8.12.9 and 8.12.10."""

LARGE = 2000.0
NEAR = 0.3
"""The expansion reaches double precision for ``a >= LARGE`` and ``|mu| <= NEAR``."""


@dataclass(frozen=True)
class Expansion:
    """The terms of both functions and of their derivatives; meaningless where not ``valid``.

    ``total`` is the sum over k, ``slope`` its derivative by a at fixed x. ``exponent`` is ``-a eta
    * eta / 2``, ``ratio`` is ``mu / eta``, ``log_ratio`` is ``log(1 + mu)``.
    """

    valid: Number
    eta: Number
    ratio: Number
    log_ratio: Number
    exponent: Number
    total: Number
    slope: Number


def expand(m: Arithmetic, a: Number, x: Number) -> Expansion:
    """Return the expansion at ``a`` and ``x``, both above 0.

    Horner's scheme over k in powers of 1 / a sums ``C[k](eta) a ** -k`` (``total``) with its
    derivatives by eta and by a.
    """
    mu = (x - a) / a
    valid = (a >= LARGE) & (m.abs(mu) <= NEAR)
    mu, a = m.where(valid, mu, 0.0), m.where(valid, a, LARGE)
    half_square = -log1p_less_x(m, mu)
    size = m.sqrt(half_square * 2.0)
    eta = m.where(mu < 0.0, -size, size)
    inverse = 1.0 / a
    ratio = polynomial(MU[::-1], eta)
    total, total_by_eta, total_by_a = eta * 0.0, eta * 0.0, eta * 0.0
    for k in reversed(range(len(ROWS))):
        coefficients = ROWS[k]
        value = polynomial(coefficients[::-1], eta)
        value_by_eta = polynomial(
            [n * coefficients[n] for n in reversed(range(1, len(coefficients)))], eta
        )
        total_by_a = total_by_a * inverse - float(k) * value * inverse
        total = total * inverse + value
        total_by_eta = total_by_eta * inverse + value_by_eta
    # At fixed x, eta changes with a by -mu / (a eta).
    slope_by_a = total_by_a - total_by_eta * ratio * inverse
    return Expansion(valid, eta, ratio, mu - half_square, -a * half_square, total, slope_by_a)
