"""Optimizer steps of ai.onnx.preview.training: new values and states of each tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

TRAINING = "ai.onnx.preview.training"

Rule = Callable[[Steps, ir.Node, Array, Array, Sequence[Array]], Sequence[Array]]
"""Takes the rate, the step number, then x, gradient and states; returns x and the states."""


def _apply(cx: ProgramBuilder, node: ir.Node, states: int, rule: Rule) -> None:
    """Emit ``rule`` for each tensor that the node trains.

    The inputs after rate and step number are all tensors x, then all gradients, then each of the
    ``states`` of all tensors. The outputs are all x, then the states.
    """
    m = Steps(cx)
    rate, step, *arrays = (m.array(value) for value in node.inputs)
    count = len(arrays) // (2 + states)
    for i in range(count):
        results = rule(m, node, rate, step, arrays[i::count])
        for value, result in zip(node.outputs[i::count], results, strict=True):
            m.set_output(value, result)


def _penalized(node: ir.Node, x: Array, gradient: Array) -> Array:
    """Return ``gradient`` plus the derivative of the penalty ``norm_coefficient / 2 * |x|^2``."""
    return x * node.attributes.get_float("norm_coefficient", 0.0) + gradient


@lowers(f"{TRAINING}::Adagrad")
def adagrad(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit steps whose rate is divided by the root of the sum of squared gradients."""
    _apply(cx, node, 1, _adagrad)


def _adagrad(
    m: Steps, node: ir.Node, rate: Array, step: Array, tensors: Sequence[Array]
) -> Sequence[Array]:
    """Return x and the sum of squares after one step of Adagrad."""
    x, gradient, squares = tensors
    attributes = node.attributes
    rate = rate / (step.cast(rate.dtype) * attributes.get_float("decay_factor", 0.0) + 1)
    gradient = _penalized(node, x, gradient)
    squares = squares + gradient * gradient
    root = m.op("Sqrt", squares) + attributes.get_float("epsilon", 1e-6)
    return x - rate * gradient / root, squares


@lowers(f"{TRAINING}::Adam")
def adam(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit steps along running means of gradients, divided by the root of their mean square."""
    _apply(cx, node, 2, _adam)


def _adam(
    m: Steps, node: ir.Node, rate: Array, step: Array, tensors: Sequence[Array]
) -> Sequence[Array]:
    """Return x, mean and squares after one step of Adam."""
    x, gradient, mean, squares = tensors
    attributes = node.attributes
    alpha, beta = attributes.get_float("alpha", 0.9), attributes.get_float("beta", 0.999)
    gradient = _penalized(node, x, gradient)
    mean = mean * alpha + gradient * (1 - alpha)
    squares = squares * beta + gradient * gradient * (1 - beta)
    denominator = m.op("Sqrt", squares) + attributes.get_float("epsilon", 1e-6)
    computed_type = ir.DataType.DOUBLE
    bias_corrections = [
        1 - m.op("Pow", m.constant(base, computed_type), step.cast(computed_type)).cast(rate.dtype)
        for base in (alpha, beta)
    ]
    corrected = rate * m.op("Sqrt", bias_corrections[1]) / bias_corrections[0]
    rate = m.op("Where", m.op("Greater", step, 0), corrected, rate)
    stepped = x - rate * (mean / denominator)
    return stepped * (1 - attributes.get_float("norm_coefficient_post", 0.0)), mean, squares


@lowers(f"{TRAINING}::Momentum")
def momentum(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit steps along a running sum of gradients; with ``nesterov``, one step ahead."""
    _apply(cx, node, 1, _momentum)


def _momentum(
    m: Steps, node: ir.Node, rate: Array, step: Array, tensors: Sequence[Array]
) -> Sequence[Array]:
    """Return x and the velocity after one step of momentum."""
    x, gradient, velocity = tensors
    attributes = node.attributes
    alpha, mode = attributes.get_float("alpha", 0.0), attributes.get_string("mode", "standard")
    gradient = _penalized(node, x, gradient)
    one = m.constant(1.0, x.dtype)
    beta = attributes.get_float("beta", 0.0) * one
    gradient_factor = m.op("Where", m.op("Greater", step, 0), beta, one)  # step 0 has no velocity
    velocity = velocity * alpha + gradient_factor * gradient
    change = gradient + velocity * alpha if mode == "nesterov" else velocity
    return x - rate * change, velocity
