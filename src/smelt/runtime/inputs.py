"""Generate random inputs for a model: typed, seeded, and in the range that the operators allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported, UsageError
from smelt.runtime.input_ranges import Range, index_range
from smelt.runtime.interface import Port, Value, instantiate, interface_of
from smelt.runtime.shape_inputs import required_input

Mode = Literal["normal", "sparse", "wide", "far", "moved", "special", "edges"]
"""The distribution of random floats.

``normal``: standard normal numbers. ``sparse``: half of them are zero, also whole rows, and the
others have very different magnitudes, so that the epsilon of a norm matters. ``wide``: numbers up
to 100 among zeros, subnormal numbers and ties, which test the tails of activations; ``far``: up to
10,000. ``moved``: normal, and inputs with a default get a changed value, which shows a default that
is used as a constant. ``special``: NaN, infinities and zeros of both signs among normal numbers.
``edges``: also subnormal numbers and the largest values.
"""

LARGEST: Mapping[str, float] = {"wide": 100.0, "far": 1e4}
"""The largest magnitude in the modes that draw large numbers."""

SEQUENCE_LENGTH = 3
"""The number of tensors in a random sequence."""
SIZE_LIMIT = 1 << 31
"""The most bytes of one input."""


def random_inputs(
    model: ir.Model, sizes: Mapping[str, int], seed: int = 0, mode: Mode = "normal"
) -> list[Value]:
    """Return one value for each input of ``model``, with its symbolic dims bound by ``sizes``.

    Inputs with a default get the default. Equal arguments give equal inputs. Raises UsageError E633
    for a missing or impossible size, Unsupported E221 for a type without random values.
    """
    ports = interface_of(model).inputs
    limits = [index_range(value, sizes) for value in model.graph.inputs]
    values = values_of(ports, limits, sizes, seed, mode)
    for index, (port, value) in enumerate(zip(ports, model.graph.inputs, strict=True)):
        if port.kind == "tensor" and port.default is None:
            required_value = required_input(value, sizes, shape_at(port, sizes))
            values[index] = values[index] if required_value is None else required_value
    return values


def values_of(
    ports: Sequence[Port],
    limits: Sequence[Range | None],
    sizes: Mapping[str, int],
    seed: int = 0,
    mode: Mode = "normal",
) -> list[Value]:
    """Return random values for ``ports`` with known ``limits``; see ``random_inputs``."""
    return [
        _value(port, sizes, limit, np.random.default_rng([seed, index]), mode)
        for index, (port, limit) in enumerate(zip(ports, limits, strict=True))
    ]


def _value(
    port: Port, sizes: Mapping[str, int], limits: Range | None, rng: np.random.Generator, mode: Mode
) -> Value:
    """Return the value of one input: its default, or random numbers; raises Unsupported E221."""
    if port.default is not None:
        default = port.default.numpy()
        return _perturbed_default(default, rng) if mode == "moved" else default
    if port.dtype is None or port.kind == "sparse":
        raise Unsupported(
            "E221",
            f"there are no random values for input {port.name!r}: its type is {port}",
            why="random values are tensors, sequences and optionals of known element types",
            fix="give your own values with --inputs",
        )
    shape = shape_at(port, sizes)
    if port.kind == "sequence":
        length = range(SEQUENCE_LENGTH)
        return [random_array(port.dtype, shape, rng, mode, limits) for _ in length]
    return random_array(port.dtype, shape, rng, mode, limits)


def shape_at(port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of ``port`` at ``sizes``.

    Raises UsageError E633 for a missing size, an impossible size, or more than 2 GiB.
    """
    try:
        shape = instantiate(port, sizes)
    except KeyError as error:
        name = str(error.args[0])
        raise UsageError(
            "E633",
            f"the dim {name!r} of {port.name!r} has no size",
            fix=f"--dim {name}=1,3",
            why="a random input needs a size for each dim",
        ) from error
    except ValueError as error:
        raise UsageError(
            "E633",
            f"the shape of input {port.name!r} cannot be computed",
            why=str(error),
            fix="choose sizes for which the shape can be computed: --dim NAME=SIZE",
        ) from error
    element_bits = port.dtype.bitwidth if port.dtype not in (None, ir.DataType.STRING) else 64
    if int(np.prod(shape, dtype=object)) * element_bits > SIZE_LIMIT * 8:
        raise UsageError(
            "E633",
            f"input {port.name!r} would take more than 2 GiB: {list(shape)}",
            why="random inputs are limited, so that a check does not exhaust memory",
            fix="choose smaller sizes: --dim NAME=SIZE",
        )
    return shape


def _perturbed_default(default: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a changed default: each float times a factor between 0.9 and 1.1."""
    if default.dtype.kind != "f":
        return default
    factor = 1 + 0.1 * rng.uniform(-1, 1, default.shape)
    return np.asarray(default * factor).astype(default.dtype)


def random_array(
    dtype: ir.DataType,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    mode: Mode = "normal",
    limits: Range | None = None,
) -> np.ndarray:
    """Return a random array of ``dtype``; integers are within ``limits`` if there are any."""
    if dtype == ir.DataType.STRING:
        letters = rng.integers(ord("a"), ord("e"), (*shape, 2), dtype=np.uint32)
        return np.ascontiguousarray(letters).view("U2").reshape(shape).astype(object)
    if dtype == ir.DataType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer():
        low, high = limits or _integer_range(dtype)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype.numpy())
    values = _floats(shape, rng, mode, dtype)
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return np.asarray(values + 1j * _floats(shape, rng, mode, dtype)).astype(dtype.numpy())
    with np.errstate(all="ignore"):
        return values.astype(dtype.numpy())


def _integer_range(dtype: ir.DataType) -> Range:
    """Return the whole range of a type of 8 bits or fewer (likely quantized data), else -8 to 8."""
    if dtype.bitwidth <= 8:
        bits = dtype.bitwidth - int(dtype.is_signed())
        return (-(2**bits) if dtype.is_signed() else 0), 2**bits - 1
    return (-8 if dtype.is_signed() else 0), 8


def _floats(
    shape: tuple[int, ...], rng: np.random.Generator, mode: Mode, dtype: ir.DataType
) -> np.ndarray:
    """Return random doubles in the distribution of ``mode``."""
    values = np.asarray(rng.standard_normal(shape))
    if mode == "sparse":
        values *= 10.0 ** rng.integers(-4, 2, shape)
        keep = rng.random(shape) < 0.5
        if shape:
            keep &= rng.random((*shape[:-1], 1)) < 0.75
        values = values * keep
    elif mode in LARGEST:
        values = _tails(values, rng, LARGEST[mode], dtype)
    elif mode in ("special", "edges"):
        specials = _specials(dtype, mode)
        chosen = rng.integers(0, len(specials), shape)
        values = np.where(rng.random(shape) < 0.25, specials[chosen], values)
    return values


def _tails(
    values: np.ndarray, rng: np.random.Generator, largest: float, dtype: ir.DataType
) -> np.ndarray:
    """Return ``values``, most of them replaced by numbers up to ``largest``, zeros, subnormal
    numbers, or one of the few values 0.5 and -1, so that elements tie.
    """
    import ml_dtypes

    subnormal = 0.0
    if dtype not in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        subnormal = 3 * float(ml_dtypes.finfo(dtype.numpy()).smallest_subnormal)
    large = rng.uniform(-largest, largest, values.shape)
    ties = np.where(rng.random(values.shape) < 0.5, 0.5, -1.0)
    kinds = [values, values, large, large, np.zeros(values.shape), ties]
    kinds.append(np.where(values < 0, -subnormal, subnormal))
    chosen = rng.integers(0, len(kinds), values.shape)
    return np.asarray(np.choose(chosen, kinds))


def _specials(dtype: ir.DataType, mode: Mode) -> np.ndarray:
    """Return zeros and ones of both signs, and the NaN, infinities or extremes of ``mode``."""
    import ml_dtypes

    zeros_and_ones = [0.0, -0.0, 1.0, -1.0]
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return np.asarray(zeros_and_ones)
    if mode == "special":
        return np.asarray([*zeros_and_ones, np.nan, np.inf, -np.inf])
    info = ml_dtypes.finfo(dtype.numpy())
    largest, tiny = float(info.max), float(info.smallest_subnormal)
    return np.asarray([*zeros_and_ones, np.nan, np.inf, -np.inf, largest, -largest, tiny, -tiny])
