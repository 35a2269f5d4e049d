"""Readers of activations."""

from __future__ import annotations

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


@reads("clamped_relu")
def _clamped_relu(call: Call) -> ir.Value:
    """Return ``min(x, beta)`` where ``x`` is 0 or more, else ``alpha * x``."""
    leaky = call.op("LeakyRelu", call.x, alpha=call.number("alpha"))
    return call.op("Min", leaky, call.like("beta", call.x))


@reads("elu")
def _elu(call: Call) -> ir.Value:
    """Return ``x``, or ``alpha * (exp(x) - 1)`` where it is negative."""
    return call.op("Elu", call.x, alpha=call.number("alpha"))


@reads("gelu")
def _gelu(call: Call) -> ir.Value:
    """Return ``x * Phi(x)``, where Phi is the normal distribution function.

    ``mode`` computes it exactly, by tanh, or as ``sigmoid(1.702 * x)``.
    """
    mode = call.word("mode", "EXACT")
    if mode == "SIGMOID_APPROXIMATION":
        scaled = call.op("Mul", call.x, call.filled(1.702, call.x))
        return call.op("Mul", call.x, call.op("Sigmoid", scaled))
    modes = {"EXACT": "none", "TANH_APPROXIMATION": "tanh"}
    if mode not in modes:
        raise call.refused(f"its mode {mode!r} is unknown")
    return call.op("Gelu", call.x, approximate=modes[mode])


@reads("leaky_relu")
def _leaky_relu(call: Call) -> ir.Value:
    """Return ``x`` where it is 0 or more, else ``alpha * x``."""
    return call.op("LeakyRelu", call.x, alpha=call.number("alpha"))


@reads("linear_activation")
def _linear_activation(call: Call) -> ir.Value:
    """Return ``alpha * x + beta``."""
    product = call.op("Mul", call.x, call.like("alpha", call.x))
    return call.op("Add", product, call.like("beta", call.x))


def per_channel(call: Call, name: str) -> ir.Value:
    """Return the parameter ``name``, one number for each channel, as (C, 1, 1, ...).

    It then broadcasts with ``x``, (N, C, H, W, ...).
    """
    vector = call.like(name, call.x)
    ones = call.rank(call.x) - 2
    return call.op("Reshape", vector, call.ints([-1] + [1] * ones))


@reads("prelu")
def _prelu(call: Call) -> ir.Value:
    """Return ``x`` where it is 0 or more, else ``x`` times the ``alpha`` of its channel."""
    return call.op("PRelu", call.x, per_channel(call, "alpha"))


@reads("relu6")
def _relu6(call: Call) -> ir.Value:
    """Return ``x`` between 0 and 6."""
    return call.op("Clip", call.x, call.filled(0, call.x), call.filled(6, call.x))


@reads("scaled_tanh")
def _scaled_tanh(call: Call) -> ir.Value:
    """Return ``alpha * tanh(beta * x)``."""
    inner = call.op("Tanh", call.op("Mul", call.x, call.like("beta", call.x)))
    return call.op("Mul", inner, call.like("alpha", call.x))


@reads("sigmoid_hard")
def _sigmoid_hard(call: Call) -> ir.Value:
    """Return ``alpha * x + beta`` between 0 and 1."""
    alpha, beta = call.number("alpha"), call.number("beta")
    return call.op("HardSigmoid", call.x, alpha=alpha, beta=beta)


@reads("silu")
def _silu(call: Call) -> ir.Value:
    """Return ``x * sigmoid(x)``."""
    return call.op("Mul", call.x, call.op("Sigmoid", call.x))


@reads("softmax")
def _softmax(call: Call) -> ir.Value:
    """Return the softmax along ``axis``."""
    return call.op("Softmax", call.x, axis=call.integer("axis", -1))


@reads("softplus_parametric")
def _softplus_parametric(call: Call) -> ir.Value:
    """Return ``alpha * log(1 + exp(beta * x))``, with an alpha and a beta for each channel."""
    inner = call.op("Softplus", call.op("Mul", call.x, per_channel(call, "beta")))
    return call.op("Mul", inner, per_channel(call, "alpha"))


@reads("thresholded_relu")
def _thresholded_relu(call: Call) -> ir.Value:
    """Return ``x`` where it is ``alpha`` or more, else 0; ONNX's operator excludes ``alpha``."""
    kept = call.op("GreaterOrEqual", call.x, call.like("alpha", call.x))
    return call.op("Where", kept, call.x, call.filled(0, call.x))
