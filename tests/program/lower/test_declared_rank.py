"""An output that is declared with fewer dims than a run gives it is refused, not an error of Python."""

from __future__ import annotations

import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

RESIZE = """g (float[1,1,2,4] x, float[4] scales) => (float y)
{ y = Resize<mode="linear">(x, , scales) }"""


def test_a_resize_that_a_run_decides() -> None:
    with pytest.raises(SmeltError, match=r"E411 the size .* of 'y'"):
        smelt.compile(text.parse(RESIZE, 19), target="host", engine="numpy")
