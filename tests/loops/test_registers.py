"""Blocks of rows in registers compute what the algorithm does, one element at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from smelt.loops import algorithm as stores
from smelt.loops.algorithm import Algorithm, Axis, Buffer, Load, Stage
from smelt.loops.interpreter import run
from smelt.loops.lower import lower
from smelt.loops.operators import NOT_BELOW_0, Operator
from smelt.loops.schedule import Vector
from smelt.native.kernels.convolution.depthwise_layout import Layout, layout_of
from smelt.native.kernels.convolution.depthwise_rows import (
    is_tall,
    pitch_of,
    plane_as_row,
    rows_of,
    supports,
)
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.epilogue import Epilogue
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import Size

FLOAT = C_TYPES[ir.DataType.FLOAT]


def window(height: int, width: int, kernel: tuple[int, int], stride: int, dilation: int) -> Window:
    """A window of which every output pixel has a full window in a padded plane."""
    reach = (kernel[1] - 1) * dilation
    size = ((height - 1) * stride + kernel[0], (width - 1) * stride + reach + 1)
    none = (0, 0, 0)
    return Window(
        (1, *size),
        (1, height, width),
        (1, *kernel),
        (1, stride, stride),
        (1, 1, dilation),
        none,
        none,
    )


CASES = {
    "3x3": (window(14, 20, (3, 3), 1, 1), 7),
    "3x3 by two": (window(9, 17, (3, 3), 2, 1), 3),
    "2x4": (window(5, 16, (2, 4), 1, 1), 5),
    "4x3 dilated along the row": (window(6, 30, (4, 3), 1, 3), 2),
    "one row at a time": (window(3, 16, (3, 3), 1, 1), 1),
    "5x5 of short rows": (window(7, 5, (5, 5), 1, 1), 7),
    "7x3": (window(4, 33, (7, 3), 1, 2), 4),
}


STEPS = Operator("steps", "{1} - {0}", lambda v, scale: scale - v)
EPILOGUES = {
    "none": None,
    "relu": stores.Epilogue(NOT_BELOW_0),
    "without a form for vectors": stores.Epilogue(
        STEPS, (Load(Buffer("scale", FLOAT, (1,)), (0,)),)
    ),
}


def with_epilogue(algorithm: Algorithm, name: str) -> Algorithm:
    return Algorithm((replace(algorithm.result, epilogue=EPILOGUES[name]),))


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_rows(name: str, epilogue: str, lanes: int) -> None:
    shape, rows = CASES[name]
    assert supports(shape)
    layout, (_, height, width) = layout_of(shape), shape.output
    direct = width >= 16
    to = (
        ("to", (height // rows, rows, width)) if direct else ("results", (1, rows, pitch_of(shape)))
    )
    algorithm, schedule = rows_of(FLOAT, shape, layout, to, Epilogue())
    algorithm = with_epilogue(algorithm, epilogue)
    rng = np.random.default_rng(len(name))
    elements = len(layout.phases) * layout.rows * layout.pitch
    arrays = {
        "from": rng.standard_normal(elements + 48, dtype=np.float32),
        "k": rng.standard_normal(shape.kernel[1] * shape.kernel[2], dtype=np.float32),
        "start": np.float32([-0.5]),
        "scale": np.float32([3]),
    }
    arrays["from"][7], arrays["from"][11] = np.nan, np.inf
    results = []
    for nest in (lower(algorithm), lower(algorithm, schedule)):
        y = np.zeros(int(np.prod(to[1])), np.float32)
        run(nest, {**arrays, to[0]: y}, lanes=lanes)
        results.append(y.reshape(to[1])[..., :width])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
    assert (results[1] < 0).any() == (epilogue != "relu")


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("length", [1, 63, 100])
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_plane_as_one_row(epilogue: str, length: int, lanes: int) -> None:
    """The last pair of vectors reaches beyond the row."""
    shape = window(7, 7, (3, 2), 2, 2)
    layout = layout_of(shape)
    algorithm, schedule = plane_as_row(FLOAT, shape, layout, Size.named("n", 1, 200), Epilogue())
    algorithm = with_epilogue(algorithm, epilogue)
    rng = np.random.default_rng(length)
    arrays = {
        "from": rng.standard_normal(400, dtype=np.float32),
        "k": rng.standard_normal(6, dtype=np.float32),
        "start": np.float32([0.25]),
        "scale": np.float32([3]),
    }
    results = []
    for nest in (lower(algorithm), lower(algorithm, schedule)):
        y = np.zeros(200, np.float32)
        run(nest, {**arrays, "results": y}, {"n": length}, lanes)
        results.append(y[:length])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
    first = _first(arrays, layout)
    expected = {"none": first, "relu": max(first, 0)}.get(epilogue, 3 - first)
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-5, atol=1e-5)


def _first(arrays: dict[str, np.ndarray], layout: Layout) -> float:
    """The first sum of a window of 3 x 2, two pixels apart in the kernel and in the plane."""
    planes = arrays["from"][: len(layout.phases) * layout.rows * layout.pitch]
    (rows, columns), total = (layout.rows, layout.pitch), float(arrays["start"][0])
    for y, x in np.ndindex(3, 2):
        phase = planes.reshape(-1, rows, columns)[layout.phases.index((y % 2, x * 2 % 2))]
        total += arrays["k"][y * 2 + x] * phase[y // 2, x * 2 // 2]
    return total


def test_a_read_is_shared_by_rows() -> None:
    """Seven rows of a 3 x 3 window read nine rows of three columns."""
    shape = window(7, 16, (3, 3), 1, 1)
    algorithm, schedule = rows_of(FLOAT, shape, layout_of(shape), ("to", (1, 7, 16)), Epilogue())
    text = repr(lower(algorithm, schedule))
    assert text.count("array='from'") == 27
    assert text.count("name='multiply-add'") == 63
    assert not is_tall(shape)


def test_an_operand_along_the_row_is_refused() -> None:
    """The last vector overlaps the one before, and the result may overwrite the operand."""
    q = Axis("q", 40)
    x, y, side = (Buffer(name, FLOAT, (40,)) for name in ("x", "y", "side"))
    along = stores.Epilogue(STEPS, (Load(side, (q.at,)),))
    algorithm = Algorithm((Stage(y, (q,), Load(x, (q.at,)), epilogue=along),))
    lower(algorithm)
    with pytest.raises(AssertionError):
        lower(algorithm, (Vector("y"),))
