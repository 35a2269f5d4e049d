"""``smelt.Einsum``: a contraction of any number of operands over a semiring, by a given path.

``equation`` is an equation of ONNX's Einsum, with any characters as labels; equal labels have equal
sizes. ``path`` lists the pairwise contractions; without a path, one is searched. With ``pairs``, an
additional last dim holds the real and imaginary parts of complex numbers.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators import dot_general
from smelt.operators.contraction import parse, sizes_of
from smelt.operators.contraction_paths import Path, check_path, find_path
from smelt.operators.contraction_steps import (
    COMBINE,
    DIAGONAL,
    DOT,
    REDUCE,
    SQUEEZE,
    Step,
    plan_of,
)
from smelt.operators.declare import (
    Arguments,
    Attribute,
    Attributes,
    Computed,
    Operator,
    Result,
    ints_of,
)
from smelt.operators.inputs import present
from smelt.operators.semiring import Semiring, semiring_of, semiring_on


def path_in(attributes: Attributes) -> Path | None:
    """Return the pairs of the attribute ``path``; None if it is empty. Raises ValueError if odd."""
    flat = ints_of(attributes, "path")
    if len(flat) % 2:
        raise ValueError(f"path {list(flat)} does not consist of pairs")
    return list(zip(flat[::2], flat[1::2], strict=True)) if flat else None


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the element type of the operands, and the sizes of the result's labels."""
    values = present(inputs)
    pairs = bool(attributes["pairs"])
    dtype = _element_type(values, attributes)
    _check_path(path_in(attributes), len(values))
    known_shapes = [value.shape.dims for value in values if value.shape is not None]
    if pairs and any(
        not dims or (isinstance(dims[-1], int) and dims[-1] != 2) for dims in known_shapes
    ):
        raise ValueError("the last dim of complex operands has the two parts of each number")
    shapes = [dims[: -1 if pairs else None] for dims in known_shapes]
    if len(shapes) < len(inputs):
        return (Result(dtype, None),)
    equation = parse(str(attributes["equation"]), [len(shape) for shape in shapes])
    sizes = sizes_of(equation.terms, shapes)
    shape = [sizes[label] for label in equation.out]
    return (Result(dtype, ir.Shape([*shape, 2] if pairs else shape)),)


def _check_path(path: Path | None, operands: int) -> None:
    """Raise ValueError unless ``path`` contracts ``operands`` operands to one."""
    try:
        if path is not None:
            check_path(path, operands)
    except UsageError as error:
        raise ValueError(error.what) from error


def _element_type(values: Sequence[ir.Value], attributes: Attributes) -> ir.DataType | None:
    """Return the common element type; raises ValueError if types differ or the semiring rejects
    it."""
    dtypes = {value.dtype for value in values}
    known = sorted(str(dtype) for dtype in dtypes - {None})
    if len(known) > 1:
        raise ValueError(f"element types {' and '.join(known)} of operands differ")
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    elements = None if dtype is None else dtype.numpy()
    if attributes["pairs"] and elements is not None:
        elements = np.result_type(elements, np.complex64)
    semiring_on(attributes["semiring"], elements)
    return dtype


def _steps(shapes: Sequence[Sequence[Dim]], attributes: Attributes) -> tuple[tuple[Step, ...], int]:
    """Return the steps of the contraction and the number of the result."""
    equation = parse(str(attributes["equation"]), [len(shape) for shape in shapes])
    sizes = {
        label: dim
        for term, shape in zip(equation.terms, shapes, strict=True)
        for label, dim in zip(term, shape, strict=True)
    }
    path = path_in(attributes)
    return plan_of(equation, find_path(equation, sizes) if path is None else path, sizes)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the result of the steps of the path, computed one by one."""
    arrays = present(inputs)
    if attributes["pairs"]:
        kind = np.result_type(arrays[0].dtype, np.complex64)
        arrays = [np.ascontiguousarray(array).view(kind)[..., 0] for array in arrays]
    semiring = semiring_of(attributes["semiring"])
    steps, result = _steps([array.shape for array in arrays], attributes)
    for step in steps:
        arrays.append(_step_result(step, [arrays[i] for i in step.inputs], semiring))
    if attributes["pairs"]:
        return (np.stack([arrays[result].real, arrays[result].imag], axis=-1),)
    return (arrays[result],)


def _step_result(step: Step, arrays: Sequence[np.ndarray], semiring: Semiring) -> np.ndarray:
    """Return the result of ``step`` on ``arrays``, its operands."""
    x = arrays[0]
    if step.op == DOT:
        attributes = {**_NO_ATTRIBUTES, **_dim_attributes(step), "semiring": str(semiring)}
        return np.asarray(dot_general.reference(arrays, attributes)[0])
    if step.op == COMBINE:
        sides = zip(arrays, step.dims, strict=True)
        aligned = [np.expand_dims(array, _missing(dims, step)) for array, dims in sides]
        return semiring.combine(*aligned).astype(x.dtype)
    if step.op == REDUCE:
        return semiring.sum(x, step.axes)
    if step.op == SQUEEZE:
        return np.squeeze(x, step.axes)
    if step.op == DIAGONAL:
        return diagonal(x, step.axes)
    return x.transpose(step.axes)


def _missing(dims: Sequence[int], step: Step) -> tuple[int, ...]:
    """Return the dims of the result of ``step`` that are not in ``dims``."""
    return tuple(dim for dim in range(len(step.labels)) if dim not in dims)


def diagonal(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Return a view of the elements of ``x`` whose indices agree in all dims of equal ``axes``.

    ``axes`` maps each dim of ``x`` to a dim of the result: (0, 0) gives the diagonal of a matrix.
    """
    dims = list(axes)
    for dim in sorted(set(dims)):
        while dims.count(dim) > 1:
            first = dims.index(dim)
            second = dims.index(dim, first + 1)
            x = x.diagonal(0, first, second)  # the new dim comes last
            dims = [*dims[:first], *dims[first + 1 : second], *dims[second + 1 :], dim]
    return x.transpose([dims.index(dim) for dim in range(len(dims))])


def _dim_attributes(step: Step) -> dict[str, tuple[int, ...]]:
    """Return the dims of a DotGeneral ``step`` by attribute name."""
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    return dict(zip(names, step.dims, strict=True))


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build the steps of the path from DotGenerals and ONNX operators."""
    values = present(inputs)
    shapes = [value.shape.dims for value in values if value.shape is not None]
    if len(shapes) < len(inputs) or attributes["pairs"]:
        return None
    semiring = semiring_of(attributes["semiring"])
    steps, result = _steps(shapes, attributes)
    for step in steps:
        values.append(_build_step(b, step, [values[i] for i in step.inputs], semiring))
    if result < len(inputs):
        return (b.op("Identity", values[result]),)
    return (values[result],)


def _build_step(b: Builder, step: Step, values: Sequence[ir.Value], semiring: Semiring) -> ir.Value:
    """Build the nodes of ``step`` on ``values``, its operands."""
    x = values[0]
    if step.op == DOT:
        attributes: dict[str, Any] = {k: dims for k, dims in _dim_attributes(step).items() if dims}
        return b.op("DotGeneral", *values, domain="smelt", semiring=str(semiring), **attributes)
    if step.op == COMBINE:
        missing = [_missing(dims, step) for dims in step.dims]
        aligned = [
            b.op("Unsqueeze", value, b.const_i64(dims)) if dims else value
            for value, dims in zip(values, missing, strict=True)
        ]
        return b.op(semiring.times, *aligned)
    if step.op == REDUCE:
        return dot_general.reduced(b, x, step.axes, semiring)
    if step.op == SQUEEZE:
        return b.op("Squeeze", x, b.const_i64(step.axes))
    if step.op == DIAGONAL:
        letters_before = "".join(string.ascii_letters[axis] for axis in step.axes)
        letters_after = string.ascii_letters[: len(step.labels)]
        return b.op("Einsum", x, equation=f"{letters_before}->{letters_after}")
    return b.op("Transpose", x, perm=step.axes)


OPERATOR = Operator(
    domain="smelt",
    name="Einsum",
    summary="Contraction of any operands over a semiring",
    inputs=("operands",),
    variadic=True,
    outputs=("output",),
    attributes=(
        Attribute("equation", ir.AttributeType.STRING, required=True),
        Attribute("semiring", ir.AttributeType.STRING, "sum_product"),
        Attribute("path", ir.AttributeType.INTS, ()),
        Attribute("pairs", ir.AttributeType.INT, 0),
    ),
    infer=infer,
    reference=reference,
    body=body,
)
_NO_ATTRIBUTES = {
    attribute.name: attribute.default for attribute in dot_general.OPERATOR.attributes
}
