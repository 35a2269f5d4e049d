"""Which kernels are split into shards: the least work on each side of a border."""

from __future__ import annotations

import pytest
from c_library import compile_c, with_constants

BORDERS = {
    "bytes": ("float[K] x", "float[K] y", "y = Relu(x)", 16384),
    "bytes, of which constants do not count": (
        "float[K] x, float[K] w",
        "float[K] y",
        "y = Add(x, w)",
        16384,
    ),
    "multiplications": ("float[64,K] x, float[K,64] w", "float[64,64] y", "y = MatMul(x, w)", 64),
    "multiplications of many bytes": (
        "float[K,4] x, float[4,200] w",
        "float[K,200] y",
        "y = MatMul(x, w)",
        328,
    ),
}
"""Ports and a node by a size K, and the least K at which it is shared: 2^17 bytes that are moved,
or 2^18 multiplications."""


@pytest.mark.parametrize(("inputs", "output", "node", "least"), BORDERS.values(), ids=BORDERS)
def test_the_least_work_that_is_shared(inputs: str, output: str, node: str, least: int) -> None:
    for size in (least - 1, least):
        graph = f"g ({inputs}) => ({output}) {{ {node} }}".replace("K", str(size))
        code = compile_c(with_constants(graph, 23, "w"), threads=2).files["model.c"]
        assert (b"model_share" in code) == (size >= least)
