"""Arrays that functions capture have the name of their parameter without its instance."""

from __future__ import annotations

import pytest

from smelt.frontends.jax.functions.captures import stem

STEMS = {
    "": "captured",
    "const": "captured",
    "const_12": "captured",
    "captured_3": "captured",
    "constant": "constant",
    "kernel": "kernel",
    "blocks_3_kernel": "kernel",
    "blocks_3_layers_12_kernel": "layers_12_kernel",
    "kernel_3": "kernel_3",
    "blocks_3_4_kernel": "kernel",
}


@pytest.mark.parametrize("name", STEMS)
def test_stem(name: str) -> None:
    assert stem(name) == STEMS[name]
