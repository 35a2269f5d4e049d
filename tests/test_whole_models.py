"""Whole models of JAX, as users write them and as deep: right, and small once optimized."""

from __future__ import annotations

from collections import Counter
from functools import cache

import onnx_ir as ir
import pytest
from fixpoint import difference, optimized
from whole_models.catalogue import MODELS
from whole_models.judging import assert_computes_the_same, traced
from whole_models.whole import WholeModel

import smelt
from smelt.ir import scope

BUDGETS: dict[str, tuple[int, dict[str, int]]] = {
    "gpt_nnx": (
        200,
        {"LayerNormalization": 25, "Gelu": 12, "Attention": 12, "Shape": 1, "Concat": 0},
    ),
    "gpt_equinox": (185, {"LayerNormalization": 25, "Gelu": 12, "Attention": 12, "Concat": 0}),
    "resnet50": (122, {"Conv": 53, "Relu": 49, "MaxPool": 1, "Transpose": 1, "Shape": 0}),
    "resnet50_keywords": (122, {"Conv": 53, "Relu": 49, "MaxPool": 1, "Transpose": 1}),
    "convnext": (163, {"Conv": 58, "Gelu": 18, "LayerNormalization": 23, "Shape": 0}),
    "vit": (192, {"LayerNormalization": 25, "Gelu": 12, "Attention": 12, "Conv": 1}),
    "lstm_linen": (12, {"Scan": 2}),
    "unet": (64, {"Conv": 19, "ConvTranspose": 2, "MaxPool": 4, "Concat": 4, "Shape": 0}),
    "diffusion": (122, {"InstanceNormalization": 9, "Attention": 1, "Conv": 10, "Shape": 0}),
    "mamba_scan": (247, {"RMSNormalization": 4, "Scan": 4}),
    "mamba_parallel": (588, {"RMSNormalization": 4, "Scan": 0, "Loop": 0, "Shape": 0}),
    "ppo": (70, {"MatMul": 0, "Tanh": 4}),
    "cfd": (5, {"Loop": 1}),
    "train_step": (335, {"Conv": 4, "Loop": 0, "If": 0}),
}
"""The most nodes that may be left, and how often an operator stands among them."""

SPELLED_OTHERWISE = {"gpt_equinox", "resnet50_keywords"}
"""Deep models whose architecture another one in the list has, too."""

DEEP = {"gpt_nnx", "gpt_equinox", "resnet50", "resnet50_keywords", "convnext", "vit"}
"""Models that XLA takes seconds to compile: their numbers are for the slow suite."""


def made(name: str, **sizes: int) -> tuple[WholeModel, ir.Model, ir.Model]:
    """A model, as smelt traces it, and what is left of that once optimized."""
    model = MODELS[name](**sizes)
    conversion = traced(model)
    return model, conversion, smelt.optimize(conversion)


kept = cache(made)


def built(name: str, **sizes: int) -> tuple[WholeModel, ir.Model, ir.Model]:
    """As ``made``, once for all tests; of deep models the weights are too many to be kept."""
    return (made if name in DEEP and not sizes else kept)(name, **sizes)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in SPELLED_OTHERWISE else []) for n in BUDGETS],
)
def test_few_nodes_are_left(name: str) -> None:
    most, counts = BUDGETS[name]
    *_, model = built(name)
    found = Counter(node.op_type for node in model.graph)
    assert {op_type: found[op_type] for op_type in counts} == counts
    assert found.total() <= most
    # The model, not its file: a file may be anybody's, whose inputs may be empty.
    assert not difference(smelt.to_proto(model), optimized(model))


def test_gpt_of_one_length_has_no_more_nodes_than_layers_need() -> None:
    gpt = MODELS["gpt_nnx"]()
    model = smelt.optimize(smelt.trace(gpt.function, "i32[B,64]"))
    found = Counter(node.op_type for node in model.graph)
    assert found.total() <= 200
    assert found["Shape"] == found["Range"] == 0


def judged(name: str, **sizes: int) -> None:
    """Both what is traced and what is left of it compute what JAX does."""
    model, *conversions = built(name, **sizes)
    assert_computes_the_same(model, conversions)


@pytest.mark.parametrize("name", sorted(MODELS.keys() - DEEP))
def test_same_numbers_as_jax(name: str) -> None:
    judged(name)


@pytest.mark.parametrize("name", ["gpt_nnx", "gpt_equinox", "vit"])
def test_same_numbers_as_jax_in_two_layers(name: str) -> None:
    judged(name, layers=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DEEP))
def test_same_numbers_as_jax_at_full_depth(name: str) -> None:
    judged(name)


def test_loops_stay_loops() -> None:
    """The steps of a recurrent network are one body, whatever the length."""
    *_, lstm = built("lstm_linen")
    assert len([node for node in lstm.graph if node.op_type == "Scan"]) == 2
    *_, cfd = built("cfd")
    nested = [node.op_type for node in scope.nodes(cfd)]
    assert nested.count("Loop") == 2


@pytest.mark.parametrize(("name", "most"), [("gpt_nnx", 122), ("gpt_equinox", 86)])
def test_a_repeated_block_is_one_function(name: str, most: int) -> None:
    """Six layers are six calls of one body, and what stands around them does not grow."""
    model = traced(MODELS[name](layers=6), functions="repeated")
    bodies = {function.name: len(function) for function in model.functions.values()}
    assert list(bodies) == ["Block"]
    assert bodies["Block"] <= 110
    assert Counter(node.op_type for node in model.graph)["Block"] == 6
    assert len(model.graph) <= most


@pytest.mark.parametrize("name", ["gpt_nnx", "gpt_equinox"])
def test_functions_compute_the_same(name: str) -> None:
    model, *_ = built(name, layers=2)
    conversion = traced(model, functions="repeated")
    assert_computes_the_same(model, [conversion, smelt.optimize(conversion)])
