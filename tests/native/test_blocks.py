"""Loops are blocked where an array is read across cache lines, and only where that pays."""

from __future__ import annotations

import pytest

from smelt.native.emit.writer import Writer
from smelt.native.kernels.blocks import blocked, transposed_loop

DENSE = (130, 1)
TRANSPOSED = {
    "rows and columns": ((130, 130), DENSE, [(1, 130)], 0),
    "of three loops the second": ((2, 130, 66), (8580, 66, 1), [(8580, 1, 130)], 1),
    "the second array": ((130, 130), DENSE, [(130, 1), (0, 1), (1, 130)], 0),
    "the fewest columns": ((2048, 8), (8, 1), [(1, 2048)], 0),
    "the fewest rows": ((8, 2048), (2048, 1), [(1, 16)], 0),
    "the fewest elements": ((128, 128), (128, 1), [(1, 128)], 0),
    "columns a cache line apart": ((130, 130), DENSE, [(1, 16)], 0),
    "columns in reverse": ((130, 130), DENSE, [(1, -16)], 0),
    "too few columns": ((4096, 7), (7, 1), [(1, 4096)], None),
    "too few rows": ((7, 4096), (4096, 1), [(1, 16)], None),
    "too few elements": ((128, 127), (127, 1), [(1, 128)], None),
    "columns in one cache line": ((130, 130), DENSE, [(1, 15)], None),
    "no array is read along rows": ((130, 130), DENSE, [(2, 130), (130, 1)], None),
    "columns are not written in order": ((130, 130), (260, 2), [(1, 130)], None),
    "one loop": ((1 << 14,), (1,), [(16,)], None),
    "sizes of the run": (("n", 130), DENSE, [(1, 130)], None),
    "strides of the run": ((130, 130), ("n", 1), [(1, 130)], None),
    "places of the run": ((130, 130), DENSE, [(1, "n")], None),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_the_loop_that_is_blocked(name: str) -> None:
    sizes, write, reads, expected = TRANSPOSED[name]
    assert transposed_loop(sizes, write, reads) == expected


LOOPS = """
for (ptrdiff_t k = 0; k < 3; ++k) {
    for (ptrdiff_t from0 = 0; from0 < 20; from0 += 16) {
        for (ptrdiff_t from2 = 0; from2 < 32; from2 += 16) {
            for (ptrdiff_t i = from0; i < (from0 + 16 < 20 ? from0 + 16 : 20); ++i) {
                for (ptrdiff_t j = from2; j < from2 + 16; ++j) {
                    body;
                }
            }
        }
    }
}
"""


def test_loops_over_blocks_end_where_the_array_does() -> None:
    body = Writer()
    with blocked(body, ["i", "k", "j"], [20, 3, 32], 0):
        body.line("body;")
    assert body.text().strip() == LOOPS.strip()
