"""Sums over axes that the data of a run tell, of tensors with dims of 0."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from c_library import compile_text

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.native.kernels.reduction_table import TABLES

SHAPES = [(2, 0, 4), (0, 3), (3, 0), (1, 0, 2), (2, 3)]
CASES = [
    (shape, axes, keep)
    for shape in SHAPES
    for count in (1, 2)
    for axes in itertools.combinations(range(len(shape)), count)
    for keep in (0, 1)
]


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_dims_of_zero(engine: str) -> None:
    for shape, axes, keep in CASES:
        x = np.ones(shape, np.float32)
        want = x.sum(axes, keepdims=bool(keep))
        sizes = [",".join(map(str, each)) for each in (shape, want.shape)]
        types = "[{}]", "[{}]" if want.shape else "{}"
        given, result = (type_.format(each) for type_, each in zip(types, sizes, strict=True))
        artifact = smelt.compile(
            text.parse(
                f"g (float{given} x, int64[{len(axes)}] a) => (float{result} y) "
                f"{{ y = ReduceSum<keepdims={keep}>(x, a) }}",
                23,
            ),
            target="host",
            engine=engine,
        )
        assert artifact.ready(None)
        (got,) = artifact(x, np.array(axes))
        np.testing.assert_array_equal(got, want, str((shape, axes, keep)))


@pytest.mark.parametrize("op", [*TABLES["float"], "ReduceLogSumExp"])
@pytest.mark.parametrize("type_", ["float", "int32", "bool"])
def test_axes_of_a_run_take_the_types_that_constant_axes_take(op: str, type_: str) -> None:
    """An engine that falls back to NumPy would hide a kernel that refuses."""

    def taken(given: str, constant: str) -> bool:
        graph = f"g ({type_}[2,3] x{given}) => ({type_}[2] y) {constant} {{ y = {op}<keepdims=0>(x, a) }}"
        try:
            return bool(compile_text(graph).files)
        except SmeltError as error:
            if error.code != "E201":
                raise
            return False

    assert taken(", int64[1] a", "") == taken("", "<int64[1] a = {1}>")
