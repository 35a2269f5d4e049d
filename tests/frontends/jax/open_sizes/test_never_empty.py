"""A traced model accepts no empty inputs, and neither does its saved file."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.extraction import become_inputs
from smelt.ir.symbolic_dims.empty_dims import is_never_empty


def rows(x):
    return jnp.concatenate([x, x[1:]]) + jax.nn.softmax(x.sum(0))


def test_a_saved_model_is_optimized_like_the_traced_one(tmp_path: Path) -> None:
    model = smelt.trace(rows, "f32[N,4]")
    smelt.save(model, tmp_path / "rows.onnx")
    read = smelt.load(tmp_path / "rows.onnx")
    assert is_never_empty(read)
    assert text.canonical(smelt.optimize(read)) == text.canonical(smelt.optimize(model))


def test_a_saved_model_refuses_empty_inputs_like_the_traced_one(tmp_path: Path) -> None:
    smelt.save(smelt.trace(rows, "f32[N,4]"), tmp_path / "rows.onnx")
    with pytest.raises(SmeltError) as caught:
        smelt.compile(tmp_path / "rows.onnx", dims={"N": (0, 9)}, target="c")
    assert caught.value.code == "E633"


def test_only_open_sizes_need_the_mark() -> None:
    assert not smelt.trace(rows, "f32[3,4]").metadata_props


def test_a_part_may_get_empty_inputs_from_the_rest() -> None:
    model = smelt.trace(rows, "f32[N,4]")
    inner = next(node for node in model.graph if node.op_type == "Slice").outputs[0]
    become_inputs(model, [inner])
    assert not is_never_empty(model)
