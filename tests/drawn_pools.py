"""Poolings of random windows, as contexts of kernels, for the tests of algorithms and schedules."""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext
from smelt.program.instruction import Instruction, Program, Slot
from smelt.program.run_sizes import Size

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


def context(
    op: str,
    shape: tuple[int | Size, ...],
    window: dict[str, tuple[int, ...]],
    dtype: ir.DataType = ir.DataType.FLOAT,
    *,
    places: bool = False,
    **attributes: int,
) -> KernelContext:
    """The pooling of a tensor of ``shape``; ``window`` has kernel_shape, strides, dilations, pads."""
    rank = len(window["kernel_shape"])
    result = [*shape[:2]]
    for i in range(rank):
        reach = (window["kernel_shape"][i] - 1) * window["dilations"][i] + 1
        padded = shape[2 + i] + window["pads"][i] + window["pads"][rank + i]
        result.append((padded - reach) // window["strides"][i] + 1)
    slots = [Slot(dtype, shape, "x"), Slot(dtype, tuple(result), "y")]
    slots += [Slot(ir.DataType.INT64, tuple(result), "i")] if places else []
    defaults = {"count_include_pad": 0, "storage_order": 0, "p": 2}
    outputs = tuple(range(1, len(slots)))
    step = Instruction(op, (0,), outputs, {**window, **defaults, **attributes})
    return KernelContext(Program("g", slots, (0,), outputs, {}, [step]), step)


def random_window(rng: np.random.Generator, rank: int) -> dict[str, tuple[int, ...]]:
    """A window whose padding is below its size."""
    kernel = rng.integers(1, 6, rank)
    draw = {
        "kernel_shape": kernel,
        "strides": rng.integers(1, 4, rank),
        "dilations": rng.integers(1, 3, rank),
        "pads": rng.integers(0, 3, 2 * rank) % np.tile(kernel, 2),
    }
    return {name: tuple(map(int, values)) for name, values in draw.items()}


def image(rng: np.random.Generator, size: int, dtype: np.dtype) -> np.ndarray:
    """Random elements; of floats, some are NaN, infinite, or zeros of either sign."""
    if dtype.kind != "f":
        return rng.integers(*_ends(dtype), size, dtype, endpoint=True)
    array = rng.standard_normal(size).astype(dtype)
    for value in SPECIAL if rng.random() < 0.5 else (-0.0,):
        array[rng.random(size) < 0.04] = value
    return array


def _ends(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def tables(cx: KernelContext) -> dict[str, np.ndarray]:
    """The constant tables among the support functions of a kernel, with what is behind them."""
    found = {}
    for name, text in cx.support.items():
        if name.startswith("counts"):
            numbers = re.search(r"\{([^#]*)", text)
            assert numbers is not None
            values = [float(each.strip().rstrip("f")) for each in numbers[1].split(",")]
            found[name] = np.array([*values, *[1] * 16], np.float32)
    return found
