"""The cells of LSTM, GRU and RNN: numbers of gates, activations and their formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from smelt.operators.elementwise import ROWS
from smelt.operators.numeric import Arithmetic, Number

Activation: TypeAlias = tuple[str, float, float]
"""The operator with its ``alpha`` and ``beta``, used or not."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``gates``: rows of weights per hidden unit; ``activations``: the defaults."""

    gates: int
    activations: tuple[str, ...]


CELLS = {
    "RNN": Cell(1, ("Tanh",)),
    "GRU": Cell(3, ("Sigmoid", "Tanh")),
    "LSTM": Cell(4, ("Sigmoid", "Tanh", "Tanh")),
}

_KNOWN: dict[str, tuple[str, float | None, float | None]] = {
    "relu": ("Relu", None, None),
    "tanh": ("Tanh", None, None),
    "sigmoid": ("Sigmoid", None, None),
    "softsign": ("Softsign", None, None),
    "softplus": ("Softplus", None, None),
    "leakyrelu": ("LeakyRelu", 0.01, None),
    "thresholdedrelu": ("ThresholdedRelu", 1.0, None),
    "elu": ("Elu", 1.0, None),
    "affine": ("Affine", 1.0, 0.0),
    "scaledtanh": ("ScaledTanh", 1.0, 1.0),
    "hardsigmoid": ("HardSigmoid", 0.2, 0.5),
}
"""Name in lower case to the operator, and default alpha and beta if it has them."""


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[Activation]:
    """Return the activations called ``names``, each with its alpha and beta.

    ``alphas`` has an entry, in order, for each activation that has an alpha; so has ``betas``.
    Missing entries are the defaults. Raises KeyError for a name that ONNX does not define.
    """
    named, alphas_left, betas_left = [], list(alphas), list(betas)
    for name in names:
        op, alpha, beta = _KNOWN[name.lower()]
        if alpha is not None and alphas_left:
            alpha = alphas_left.pop(0)
        if beta is not None and betas_left:
            beta = betas_left.pop(0)
        named.append((op, alpha or 0.0, beta or 0.0))
    return named


def activate(m: Arithmetic, activation: Activation, x: Number) -> Number:
    """Return ``activation`` of ``x``: by the formula of its operator if it has one, else by ``m``.

    Affine and ScaledTanh exist only as activations, so their formulas are here.
    """
    op, alpha, beta = activation
    if op == "Affine":
        return alpha * x + beta
    if op == "Relu":
        return m.maximum(x, 0.0)
    if op == "ScaledTanh":
        return alpha * m.tanh(beta * x)
    formula = ROWS[op].formula
    if formula is None:
        return m.op(op, x)
    _, has_alpha, has_beta = _KNOWN[op.lower()]
    parameters = {} if has_alpha is None else {"alpha": alpha}
    if has_beta is not None:
        parameters["beta"] = beta
    return formula(m, x, **parameters)
