"""The rows of activations that products read, drawn from the calibration samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from smelt.precision.batches import Sample
from smelt.precision.int8.observe import observe

MOST_ROWS = 2048
"""The most rows that are kept of one activation."""

AT_ONCE = 12
"""The activations whose rows are kept at the same time, so that memory stays small."""


def rows_of_activations(
    model: ir.Model, names: Sequence[str], samples: Sequence[Sample]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield ``(name, rows)``: at most ``MOST_ROWS`` rows of the last axis, spread over all samples.

    Activations without rows, and those with NaN or infinity, are left out.
    """
    most = max(1, MOST_ROWS // max(len(samples), 1))
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        kept: dict[str, list[np.ndarray]] = {name: [] for name in part}
        for name, value in observe(model, part, samples):
            if not value.ndim or not value.size:
                continue
            rows = value.reshape(-1, value.shape[-1])
            step = -(-len(rows) // most)
            kept[name].append(rows[::step].astype(np.float32))
        for name, parts in kept.items():
            rows = np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
            if rows.size and np.isfinite(rows).all():
                yield name, rows
