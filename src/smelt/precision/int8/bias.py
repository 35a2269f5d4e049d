"""Bias correction: the mean error of rounded weights moves into the bias of their product.

    y = W x + b        Q x + b  is off by (Q - W) x, which is (Q - W) E[x] on average
                       Q x + (b + (W - Q) E[x])

``E[x]`` is the mean of each channel of the activation on the calibration data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.precision.batches import Sample
from smelt.precision.int8.candidates import is_plain_gemm, operand_name, result_name
from smelt.precision.int8.linear import Codes, numbers_of
from smelt.precision.int8.observe import observe

Means = Mapping[str, np.ndarray]
"""The mean of each channel of the activation, by the name of the product's result."""


def has_bias(node: ir.Node, constants: Constants) -> bool:
    """True for a Conv or plain Gemm with a constant bias of one number for each channel."""
    if node.op_type != "Conv" and not (node.op_type == "Gemm" and is_plain_gemm(node)):
        return False
    bias = constants.get(optional_input(node, 2), None)
    return bias is not None and bias.ndim == 1


def _source_and_axis(node: ir.Node) -> tuple[str, int]:
    """Return the name of the activation of a Conv or Gemm, and the axis of its channels."""
    return operand_name(node), 1 if node.op_type == "Conv" else -1


def channel_means(
    model: ir.Model, names: Iterable[str], samples: Sequence[Sample]
) -> dict[str, np.ndarray]:
    """Return the means for the products of ``model`` with a bias whose results have ``names``."""
    wanted, constants = set(names), Constants()
    nodes = [
        node for node in model.graph if result_name(node) in wanted and has_bias(node, constants)
    ]
    axes = {_source_and_axis(node) for node in nodes}
    sums: dict[tuple[str, int], np.ndarray] = {}
    counts = dict.fromkeys(axes, 0)
    for name, value in observe(model, sorted({name for name, _ in axes}), samples):
        for axis in (1, -1):
            if (name, axis) in axes and value.size:
                rows = np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
                total = rows.sum(axis=1, dtype=np.float64)
                sums[name, axis] = sums.get((name, axis), np.zeros(len(total))) + total
                counts[name, axis] += rows.shape[1]
    made = {}
    for node in nodes:
        key = _source_and_axis(node)
        if key in sums and np.isfinite(sums[key]).all():
            made[result_name(node)] = sums[key] / counts[key]
    return made


def bias_shift(node: ir.Node, weight: np.ndarray, codes: Codes, mean: np.ndarray) -> np.ndarray:
    """Return what to add to the bias of ``node``: a number for each channel.

    ``weight`` and ``codes`` are as the node reads them. The borders of a padded convolution, which
    read zeros, count as the inside.
    """
    difference = weight.astype(np.float64) - numbers_of(codes)
    if node.op_type == "Gemm":
        inner = 1 - codes.axis if not codes.block else codes.axis
        return np.tensordot(difference, mean, (inner, 0))
    channels, per_group = difference.shape[:2]
    taps = difference.reshape(channels, per_group, -1).sum(axis=2)
    groups = node.attributes.get_int("group", 1)
    means = np.repeat(mean.reshape(groups, per_group), channels // groups, axis=0)
    return np.asarray((taps * means).sum(axis=1))


def corrected_bias(
    node: ir.Node, weight: np.ndarray, codes: Codes, mean: np.ndarray, constants: Constants
) -> np.ndarray | None:
    """Return the bias of ``node`` plus its shift; None if that is not finite or of another shape.

    ``weight`` and ``codes`` are as the node reads them.
    """
    bias = constants.get(optional_input(node, 2), None)
    if bias is None or codes.is_transposed:
        return None
    with np.errstate(over="ignore"):
        corrected = (bias + bias_shift(node, weight, codes, mean)).astype(bias.dtype)
    is_usable = corrected.shape == bias.shape and np.isfinite(corrected).all()
    return corrected if is_usable else None
