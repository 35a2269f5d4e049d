"""Elementwise kernels run on blocks of a cache's size, each element once."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.targets.host.kernels import elementwise
from smelt.targets.host.kernels.elementwise import in_blocks


@pytest.mark.parametrize(
    ("shapes", "blocks"),
    [
        ([(16,), (16,)], [16]),
        ([(17,), (17,)], [16, 1]),
        ([(4, 8), (4, 8)], [16, 16]),
        ([(8,), (4, 8)], [16, 16]),
        ([(4, 1), (4, 8)], [16, 16]),
        ([(), (4, 8)], [16, 16]),
        ([(1, 40), (1, 40)], [16, 16, 8]),
        ([(40,), (2, 40)], [16, 16, 8] * 2),
        ([(3, 1, 8), (3, 4, 8)], [16, 16] * 3),
    ],
)
def test_blocks_of_sixteen(shapes, blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "BLOCK", 16)
    x = np.arange(np.prod(shapes[0]), dtype=float).reshape(shapes[0])
    out = np.full(shapes[1], np.nan)
    sizes = []

    def run(x: np.ndarray, out: np.ndarray) -> None:
        sizes.append(out.size)
        assert np.isnan(out).all()
        out[...] = x + 1

    in_blocks(run, [x, out])
    assert sizes == blocks
    assert np.array_equal(out, np.broadcast_to(x + 1, out.shape))
