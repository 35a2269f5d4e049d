"""MelWeightMatrix: the weight of each bin of a spectrum in each band of the mel scale.

Rounded as in ONNX Runtime: ends and step of the scale in float32, frequencies in double.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import data_dependent_size, is_data_dependent
from smelt.program.lower.registry import lowers

FLOAT, DOUBLE, INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64

PER_DECADE, CORNER = 2595.0, 700.0
"""Mels per factor of ten above the corner frequency, and the corner frequency in hertz."""


@lowers("MelWeightMatrix")
def mel_weight_matrix(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the matrix [dft_length / 2 + 1, num_mel_bins] that sums a spectrum into mel bands.

    The weights of a band rise from 0 at the center of the band before, to 1 at its own center, and
    fall to 0 at the center of the band after.
    """
    m = Steps(cx)
    bands, length, rate, low, high = (m.array(value).reshape() for value in node.inputs)
    rows = _numbers(cx, m, node, 0, length.cast(INT64) / 2 + 1)
    columns = _numbers(cx, m, node, 1, bands.cast(INT64))
    begin = _mels(m, low)
    step = (_mels(m, high) - begin) / (bands.cast(FLOAT) + 2.0)

    def bin_of(offset: int) -> Array:
        """Return the spectrogram bin of each band's begin (offset 0), center (1) or end (2)."""
        mels = (columns + offset).cast(FLOAT) * step + begin
        hertz = (m.op("Exp", mels.cast(DOUBLE) * (math.log(10) / PER_DECADE)) - 1.0) * CORNER
        return m.op("Floor", hertz * (length.cast(DOUBLE) + 1.0) / rate.cast(DOUBLE))

    first, middle, last = (bin_of(offset) for offset in range(3))
    spectrogram_bin = rows.cast(DOUBLE).reshape(rows.shape[0], 1)
    rising_width, falling_width = m.op("Max", middle - first, 1.0), m.op("Max", last - middle, 1.0)
    rising_weight = m.op(
        "Where", m.op("Equal", first, middle), 1.0, (spectrogram_bin - first) / rising_width
    )
    weights = m.op(
        "Where", spectrogram_bin > middle, (last - spectrogram_bin) / falling_width, rising_weight
    )
    is_in_triangle = (spectrogram_bin >= first) & (
        (spectrogram_bin < last) | m.op("Equal", spectrogram_bin, middle)
    )
    to = ir.DataType(node.attributes.get_int("output_datatype", FLOAT.value))
    m.set_output(node.outputs[0], m.op("Where", is_in_triangle, weights, 0.0).cast(to))


def _numbers(cx: ProgramBuilder, m: Steps, node: ir.Node, axis: int, limit: Array) -> Array:
    """Return the integers from 0 to ``limit - 1`` along an axis of the result."""
    output = node.outputs[0]
    size = data_dependent_size(cx, output, axis)
    if isinstance(size, int) and not is_data_dependent(cx, node, [1 - axis]):
        return m.numbers(size)
    return m.numbers_below(limit, size, output)


def _mels(m: Steps, hertz: Array) -> Array:
    """Return frequencies in ``hertz`` on the mel scale: ``2595 log10(1 + f / 700)``."""
    scale = m.op("Log", hertz.cast(FLOAT) / CORNER + 1.0) * (PER_DECADE / math.log(10))
    return scale.cast(FLOAT)
