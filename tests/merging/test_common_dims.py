"""A merged dim has one size whenever a branch runs, whatever both models call their dims."""

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from smelt.merging.common_dims import CommonDims, as_number_or_text

TEXTS = ["N", "M", "x_0", "x_0_", "y_1", "N + 1", "past + 1", None, 1, 4]
NAMES = ["x", "y", "z", "x_0"]


def drawn(rng):
    """Return inputs of two models by name, some of them in one model alone."""
    models = ({}, {})
    for name in NAMES:
        rank = int(rng.integers(0, 4))
        for model, is_there in zip(
            models, rng.permutation([True, bool(rng.integers(2))]), strict=True
        ):
            if is_there:
                dims = [TEXTS[index] for index in rng.integers(0, len(TEXTS), rank)]
                model[name] = ir.Value(name=name, shape=ir.Shape(dims))
    return models


def merged_shapes(first, second):
    """Return the common dims, and the merged shape of each input."""
    common = CommonDims([*first.values(), *second.values()])
    shapes = {
        name: common.common_shape(v, second[name]) for name, v in first.items() if name in second
    }
    for index, model in enumerate((first, second)):
        for name, value in model.items():
            if name not in shapes:
                shapes[name] = common.shape_of_one(value, index)
    return common, shapes


@pytest.mark.parametrize("seed", range(8))
def test_equal_names_are_equal_dims_of_each_model(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        models = drawn(rng)
        common, shapes = merged_shapes(*models)
        for index, model in enumerate(models):
            known = [
                (as_number_or_text(merged), as_number_or_text(own))
                for name, value in model.items()
                for merged, own in zip(shapes[name].dims, value.shape.dims, strict=True)
            ]
            for (a, own_a), (b, own_b) in itertools.combinations(known, 2):
                if a is not None and a == b:
                    assert own_a == own_b, (models, shapes)
            for value in model.values():
                for own in value.shape.dims:
                    for merged in common.translated(own, index):
                        assert all(o == as_number_or_text(own) for m, o in known if m == merged), (
                            models,
                            shapes,
                        )


def test_a_dim_of_fixed_size_in_one_model_is_open():
    _, shapes = merged_shapes(
        {"x": ir.Value(name="x", shape=ir.Shape(["B", 5, 64]))},
        {"x": ir.Value(name="x", shape=ir.Shape(["B", 1, 64]))},
    )
    assert [as_number_or_text(dim) for dim in shapes["x"].dims] == ["B", "x_1", 64]


def test_an_unknown_rank_stays_unknown():
    _, shapes = merged_shapes(
        {"x": ir.Value(name="x")}, {"x": ir.Value(name="x", shape=ir.Shape([1]))}
    )
    assert shapes["x"] is None
