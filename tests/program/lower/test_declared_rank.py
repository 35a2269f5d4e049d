"""An output declared with fewer dims than a run gives it is refused with a coded error."""

from __future__ import annotations

import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

RESIZE = """g (float[1,1,2,4] x, float[4] scales) => (float y)
{ y = Resize<mode="linear">(x, , scales) }"""


def test_a_resize_with_run_time_sizes() -> None:
    with pytest.raises(SmeltError, match=r"E411 the size .* of 'y'"):
        smelt.compile(text.parse(RESIZE, 19), target="host", engine="numpy")
