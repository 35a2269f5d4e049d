"""Arrays of the host have at most 64 dims and 2^63 bytes; more are refused before anything runs."""

from __future__ import annotations

import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text


def model(rank: int) -> str:
    dims = ",".join(["1"] * rank)
    return f"g (float[{dims}] x) => (float[{dims}] y) {{ y = Relu(x) }}"


def test_the_highest_rank() -> None:
    assert smelt.compile(text.parse(model(64)), target="host").files is not None


def test_one_dim_more() -> None:
    with pytest.raises(SmeltError, match="E404"):
        smelt.compile(text.parse(model(65)), target="host")


def test_more_bytes_than_addresses() -> None:
    graph = f"g (float[{2**62}] x) => (float[{2**62}] y) {{ y = Relu(x) }}"
    with pytest.raises(SmeltError, match="E501"):
        smelt.compile(text.parse(graph), target="host")
