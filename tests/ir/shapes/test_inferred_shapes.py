"""Each inferred shape and type of an operator is that of its result.

Operands are random and fit together; open dims have two sizes each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import defs
from random_operands import Fitting, operators

from smelt.errors import SmeltError
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import size_of
from smelt.runtime.runner import open_runner

SIZES = ({"N": 3, "M": 4}, {"N": 5, "M": 7})


def _arrays(model: ir.Model, sizes: dict[str, int]) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for value in model.graph.inputs:
        assert value.shape is not None
        assert value.dtype is not None
        shape = [size_of(dim, sizes) for dim in value.shape.dims]
        yield np.asarray(rng.integers(1, 3, shape)).astype(value.dtype.numpy())


def compared(proto: onnx.ModelProto) -> tuple[Counter[str], list[str]]:
    """Return how many dims the results have, how many of them are inferred, and which are inferred
    wrong. Raises SmeltError if the model does not run.
    """
    model = ir.from_proto(proto)
    run = open_runner(model.clone())
    found = [(sizes, run(*_arrays(model, sizes))) for sizes in SIZES]
    ShapeInference(model).infer_model()
    counts, wrong = Counter(ran=1), []
    for sizes, results in found:
        for value, result in zip(model.graph.outputs, results, strict=True):
            if not isinstance(result, np.ndarray):
                continue
            counts["dims"] += result.ndim
            shape = value.shape if value.shape is not None else [ir.SymbolicDim(None)] * result.ndim
            dims = [size_of(dim, sizes) for dim in shape]
            told = [
                dim if isinstance(dim, int) else size
                for dim, size in zip(dims, result.shape, strict=False)
            ]
            counts["told"] += sum(isinstance(dim, int) for dim in dims)
            right = len(dims) == result.ndim and tuple(told) == result.shape
            if not right or value.dtype not in (None, ir.DataType.from_numpy(result.dtype)):
                wrong.append(f"{value} for {result.shape} at {sizes} of {model.graph.node(0)}")
    return counts, wrong


def agreement(draws: range, opsets: Sequence[int]) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return the counts by operator, and every dim that is inferred wrong."""
    found: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for name, number in product(operators(), draws):
        random = Random(f"{name} fits {number}")
        opset = random.choice([each for each in opsets if defs.has(name, each, "")])
        proto = Fitting(name, random, opset).model()
        try:
            counts, differences = compared(proto)
        except SmeltError:
            continue
        found.setdefault(name, Counter()).update(counts)
        wrong += differences
    return found, wrong


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(5, 500, 5))]
)
def test_inferred_shapes_are_those_of_the_results(start: int) -> None:
    found, wrong = agreement(range(start, start + 5), (13, 18, 20, 23))
    assert not wrong, "\n".join(wrong)
    assert len(found) > 120
    total = sum((found[name] for name in found.keys() - DATA_TELL), Counter[str]())
    assert total["told"] >= 0.99 * total["dims"], total


DATA_TELL = {"Compress", "NonZero", "OneHot", "Squeeze", "Unique"}
"""Operators whose results may be as large as data say, or have a rank that sizes decide."""
