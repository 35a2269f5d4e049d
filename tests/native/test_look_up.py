"""Bytes that select from a table of 256: all of them, in runs of any length, by every build."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT, Library, ops

SIZES = (1, 7, 8, 63, 255, 256, 257, 319, 320, 4096, 4161)
"""Around eight at a time, a run of vectors, and the length from which a run is cut."""


def graph(kind: str, size: int) -> str:
    """A Tanh between bytes."""
    zero = "131" if kind == "uint8" else "-3"
    return (
        f"g ({kind}[{size}] x) => ({kind}[{size}] y) <float s = {{0.03}}, float t = {{0.008}}, "
        f"{kind} z = {{{zero}}}> "
        "{ a = DequantizeLinear(x, s, z) b = Tanh(a) y = QuantizeLinear(b, t, z) }"
    )


@pytest.fixture(scope="module")
def graphs() -> dict[str, str]:
    return {f"{kind} {n}": graph(kind, n) for kind in ("uint8", "int8") for n in SIZES}


@pytest.mark.parametrize(
    "flags",
    [STRICT, (*STRICT, "-DSUMS=1"), (*STRICT, "-march=native")],
    ids=["plain", "no vectors", "of this CPU"],
)
def test_each_byte_becomes_the_element_that_it_selects(
    graphs: dict[str, str], flags: tuple[str, ...]
) -> None:
    library = Library(graphs, flags=flags)
    for name in graphs:
        kind, size = name.split()
        x = np.resize(np.random.default_rng(0).permutation(256), int(size)).astype(kind)
        zero = np.float32(131 if kind == "uint8" else -3)
        value = np.tanh((x.astype(np.float32) - zero) * np.float32(0.03)) / np.float32(0.008)
        limits = np.iinfo(kind)
        wanted = np.clip(np.rint(value) + zero, limits.min, limits.max).astype(kind)
        (got,) = library.run(name, [x])
        np.testing.assert_array_equal(got, wanted, err_msg=name)
        assert ops(library.models[name].artifact) == ["smelt::Lookup"]
