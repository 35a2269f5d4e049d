"""Outputs that no kernel writes: they are copied, whatever their size, unless they are empty."""

from __future__ import annotations

import pytest
from c_library import compile_text


@pytest.mark.parametrize(
    ("port", "copied"), [("bool", 1), ("int8[1]", 1), ("float[2,3]", 24), ("float[0]", 0)]
)
def test_an_output_that_is_an_input_is_copied(port: str, copied: int) -> None:
    code = compile_text(f"g ({port} x) => ({port} y) {{ y = Identity(x) }}").files["model.c"]
    assert (b"memcpy(outputs[0]" in code) == (copied > 0)
    assert (f"memcpy(outputs[0], inputs[0], {copied});".encode() in code) == (copied > 0)
