"""Special functions, as operators of the ``smelt`` domain that any runtime gets as functions."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from smelt.frontends.jax.registry import lowers

OPERATORS = {
    "bessel_i0e": "BesselI0e",
    "bessel_i1e": "BesselI1e",
    "digamma": "Digamma",
    "erf_inv": "ErfInv",
    "erfc": "Erfc",
    "igamma": "Igamma",
    "igamma_grad_a": "IgammaGradA",
    "igammac": "Igammac",
    "lgamma": "Lgamma",
    "polygamma": "Polygamma",
    "regularized_incomplete_beta": "Betainc",
    "zeta": "Zeta",
}
"""Primitives that one operator computes, element by element."""


def _lower(name: str) -> Callable[..., ir.Value]:
    return lambda cx, *operands: cx.op(name, *operands, domain="smelt")


for _primitive, _name in OPERATORS.items():
    lowers(_primitive, broadcasts=True)(_lower(_name))
