"""Move the size of activations into weights, channel by channel, where that lowers the error.

    before   x ─> MatMul(x, w)
    after    x / s ─> MatMul(x / s, s * w)

Large channels of an activation cost all others their bits. Dividing them by ``s`` and multiplying
the rows of the weights keeps the product. With activations in integers this is SmoothQuant; with
weights alone it is AWQ: rows that meet large activations are rounded in finer steps. The power of
each is chosen by the error of the product on rows of the calibration data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.precision.batches import Sample
from smelt.precision.int8.absorb import divide_activation
from smelt.precision.int8.candidates import Candidate, Weight, operand_array, result_name, weight_of
from smelt.precision.int8.linear import activation_parameters, weight_codes
from smelt.precision.int8.rows import rows_of_activations
from smelt.precision.int8.writer import Format

POWERS = (0.25, 0.5, 0.75)
"""The powers of the activation's channels that are tried."""

MOST_ROWS = 256
"""The most rows on which the error of a product is computed."""

WORTH = 0.9
"""A scale is used if the squared error falls below this part: it may cost a multiplication."""

LEAST = 1e-5
"""A channel below this part of the largest one counts as this part."""


@dataclass(frozen=True)
class Product:
    """A product of the model: its node, its weight, and the weight as ``[inner, channels]``."""

    node: ir.Node
    weight: Weight
    matrix: np.ndarray


def scale_activations(
    model: ir.Model,
    candidates: Sequence[Candidate],
    samples: Sequence[Sample],
    format_: Format,
    *,
    may_add: bool = True,
) -> int:
    """Scale the activations of ``candidates`` in place where that pays; return how many.

    The model computes the same as before but for rounding of floats. ``may_add``: it may have more
    multiplications.
    """
    constants = Constants()
    by_source = dict(products_by_source(model, candidates, constants))
    count = 0
    found = [
        (source, best_scale(rows, [each.matrix for each in by_source[source]], format_))
        for source, rows in rows_of_activations(model, list(by_source), samples)
    ]
    for source, scale in found:
        if scale is not None:
            nodes = [each.node for each in by_source[source]]
            count += divide_activation(model, nodes, scale, may_add=may_add)
    return count


def products_by_source(
    model: ir.Model, candidates: Sequence[Candidate], constants: Constants
) -> Iterator[tuple[str, list[Product]]]:
    """Yield the activations that only products of matrices read as such, with these products.

    Products whose weight another product or a Gather also reads are left out, because a scaled copy
    for one of the readers would be a second weight in the file.
    """
    by_name = {result_name(node): node for node in model.graph}
    for candidate in candidates:
        if not candidate.source:
            continue
        made = []
        for node in (by_name[name] for name in candidate.nodes):
            weight = weight_of(node, constants)
            if not isinstance(weight, Weight) or weight.inner < 0 or _is_shared(weight.value):
                break
            array = operand_array(weight, constants)
            made.append(Product(node, weight, array if weight.inner == 0 else array.T))
        else:
            yield candidate.source, made


def _is_shared(value: ir.Value) -> bool:
    """True if several nodes read ``value``."""
    pending, readers = [value], 0
    while pending:
        for node in (use.node for use in pending.pop().uses()):
            if node.op_type in ("Transpose", "Identity"):
                pending.append(node.outputs[0])
            else:
                readers += 1
    return readers > 1


def best_scale(
    rows: np.ndarray, matrices: Sequence[np.ndarray], format_: Format
) -> np.ndarray | None:
    """Return the divisor of each channel with the least error of the products, None for no gain."""
    few = rows[:: -(-len(rows) // MOST_ROWS)]
    wholes = [few @ matrix for matrix in matrices]
    plain = _error(few, matrices, wholes, format_)
    if not plain:
        return None
    best, scale = WORTH * plain, None
    for trial in _scales(rows, matrices, is_weight_only=bool(format_.block)):
        error = _error(few / trial, [trial[:, None] * each for each in matrices], wholes, format_)
        if error < best:
            best, scale = error, trial
    return scale


def _scales(
    rows: np.ndarray, matrices: Sequence[np.ndarray], *, is_weight_only: bool
) -> Iterator[np.ndarray]:
    """Yield the divisors to try: ``size**p / weight**q`` by channel, with a geometric mean of 1.

    ``weight`` is the largest weight of a channel; ``p`` is one of ``POWERS``, and ``q`` is 0 (AWQ)
    or ``1 - p`` (SmoothQuant). ``size`` is the magnitude of the activation's channel: the largest,
    which sets the step of its integers; if weights alone are rounded, the mean, by which the errors
    of a row of weights reach the result.
    """
    size = np.abs(rows).mean(axis=0) if is_weight_only else np.abs(rows).max(axis=0)
    weight = np.max([np.abs(matrix).max(axis=1) for matrix in matrices], axis=0)
    size, weight = (np.maximum(each, LEAST * each.max()) for each in (size, weight))
    if not (size > 0).all() or not (weight > 0).all():
        return
    for power in POWERS:
        for other in (0.0, 1 - power):
            scale = size**power / weight**other
            yield (scale / np.exp(np.log(scale).mean())).astype(np.float32)


def _error(
    rows: np.ndarray,
    matrices: Sequence[np.ndarray],
    wholes: Sequence[np.ndarray],
    format_: Format,
) -> float:
    """Return the squared error of the products of ``rows`` in the integers of ``format_``."""
    if not format_.block:
        parameters = activation_parameters(
            rows.min(), rows.max(), signed=format_.signed, bits=format_.activation_bits
        )
        low, high = parameters.limits
        step = float(parameters.scale)
        rows = np.clip(np.rint(rows / step) * step, low, high)
    total = 0.0
    for matrix, whole in zip(matrices, wholes, strict=True):
        total += float(np.square(rows @ _rounded(matrix, format_) - whole).sum())
    return total


def _rounded(matrix: np.ndarray, format_: Format) -> np.ndarray:
    """Return ``matrix`` rounded to its codes and back."""
    if not format_.block:
        codes = weight_codes(matrix, 1, bits=format_.weight_bits, per_tensor=format_.per_tensor)
        return np.asarray(codes.codes * codes.scale, np.float32)
    inner, channels = matrix.shape
    count = -(-inner // format_.block)
    padded = np.zeros((count * format_.block, channels), np.float32)
    padded[:inner] = matrix
    blocks = padded.reshape(count, format_.block, channels)
    step = format_.grid.full_scale(np.abs(blocks).max(axis=1, keepdims=True))
    return format_.grid.rounded(blocks, step).reshape(padded.shape)[:inner]
