"""Compile tensor networks from einsum equations, and whole models over a semiring."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from operator import index
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.compiler import Source, compile_model
from smelt.errors import ErrorList, Unsupported, UsageError
from smelt.frontends import onnx as onnx_frontend
from smelt.ir.complex_pairs import mark_pairs
from smelt.ir.same_shape import Dim
from smelt.operators import expand
from smelt.operators.contraction import (
    Equation,
    Finder,
    Path,
    find_path,
    parse,
    sizes_of,
    with_labels_for_ones,
)
from smelt.operators.contraction_slices import Slices, slices_within
from smelt.operators.einsum import OPERATOR as EINSUM
from smelt.operators.over_semiring import over_semiring as of_model
from smelt.operators.semiring import Semiring, semiring_of
from smelt.operators.sliced_einsum import build_loop
from smelt.targets.base import Artifact, Target
from smelt.targets.registry import find_target

OPSET = 23
MOST_DIMS = 64
"""The most dims of a NumPy array."""


def compile_einsum(
    equation: str,
    shapes: Sequence[Sequence[int | str]],
    dtype: Any = np.float32,
    *,
    target: str | Target = "host",
    semiring: str | Semiring = "sum_product",
    optimize: str | Path | Finder = "auto",
    memory_limit: int | None = None,
    **options: Any,
) -> Artifact:
    """Compile a contraction: ``smelt.compile_einsum("ab,bc->ac", [(2, 3), (3, 4)])(x, y)``.

    ``equation`` is a ``numpy.einsum`` equation, with any characters as labels, for operands of
    ``shapes`` (numbers or names) and one ``dtype``; a size of 1 broadcasts. The artifact takes an
    array for each operand and returns one result, all of ``dtype``; contiguous arrays are not
    copied. On ``host``, a result that only shows elements of an operand, such as ``"ab->ba"``, is a
    read-only view, unless ``views=False``.

    ``semiring`` defines plus and times: a name, such as ``max_plus``, or a ``Semiring``. Operands
    are contracted in pairs along the path of ``optimize``: a finder of opt_einsum or cotengra, its
    name, or explicit pairs. No intermediate has more than ``memory_limit`` elements, if given;
    where no path allows that, some summed dims are looped over. ``options`` are those of the
    target.

    Raises UsageError E655 for an equation, E656 for shapes or a dtype, E657 for a semiring, E658
    for a path, and what ``smelt.compile`` raises.
    """
    algebra = semiring_of(semiring)
    given = _dtype(dtype)
    if not algebra.takes(given):
        fix = (
            "use semiring='or_and'"
            if given.kind == "b"
            else "choose another dtype=, or another semiring="
        )
        raise UsageError(
            "E656",
            f"the semiring {algebra} is not defined on {given}",
            fix=fix,
            why="its operators are not defined for this element type",
        )
    dims = [_dims(shape) for shape in shapes]
    try:
        parsed = parse(str(equation), [len(shape) for shape in dims])
    except ValueError as error:
        raise UsageError(
            "E655",
            "the equation does not fit",
            why=str(error),
            fix="give an equation with one term for each operand, such as 'ij,jk->ik'",
        ) from error
    try:
        parsed = with_labels_for_ones(parsed, dims)
    except ValueError as error:
        raise UsageError(
            "E656",
            "the shapes do not fit the equation",
            why=str(error),
            fix="give each operand one dim for each letter of its term; equal letters are equal "
            "sizes",
        ) from error
    if max(map(len, (*parsed.terms, parsed.out))) > MOST_DIMS:
        raise UsageError(
            "E656",
            f"an array of the equation has more than {MOST_DIMS} dims",
            why="ONNX and NumPy limit the number of dims",
            fix="split the equation so that no array has more dims",
        )
    sizes = sizes_of(parsed.terms, dims)
    if memory_limit is not None and not (isinstance(memory_limit, int) and memory_limit > 0):
        raise UsageError(
            "E658",
            f"memory_limit={memory_limit!r} is not a number of elements",
            fix="give a whole number, such as memory_limit=1_000_000, or None for no limit",
            why="the limit counts elements, 1 or more",
        )
    if memory_limit is None:
        slices = Slices((), parsed, find_path(parsed, sizes, optimize))
    else:
        slices = slices_within(parsed, sizes, optimize, memory_limit)
    attributes: dict[str, Any] = {"equation": str(slices.equation), "semiring": str(algebra)}
    if given.kind == "c":
        attributes["pairs"] = 1
    if slices.path:
        attributes["path"] = [number for pair in slices.path for number in pair]
    model = _model(dims, given)
    result = _contracted(model, parsed, slices, sizes, algebra, attributes)
    if given.kind == "c":
        mark_pairs(result, str(given))
    return _compiled(model, find_target(target), options, is_whole=not slices.labels)


def _compiled(
    model: ir.Model, target: Target, options: dict[str, Any], *, is_whole: bool
) -> Artifact:
    """Compile ``model``, the model of an equation, for ``target``.

    ``is_whole``: the model is a single Einsum. The target then gets it unchanged, without passes
    that would decompose it. If the target refuses it, its passes run as for other models.
    """
    if _shows_inputs(target):
        options = {"views": True, **options}
    if target.computes is None:
        expand(model, [EINSUM])
        return compile_model(model, target=target, **options)
    if is_whole:
        with suppress(Unsupported, ErrorList):
            return compile_model(model, target=replace(target, passes=""), pipeline="", **options)
    return compile_model(model, target=target, pipeline="", **options)


def over_semiring(model: Source, semiring: str | Semiring) -> Any:
    """Replace plus and times in ``model`` by those of ``semiring``; see ``smelt.operators``.

    ``model`` is what ``smelt.optimize`` takes; a ModelProto or bytes give a ModelProto. Raises
    UsageError E657 for no semiring, and an ErrorList of Unsupported E659 for operators without a
    meaning over it.
    """
    if isinstance(model, ir.Model):
        return of_model(model, semiring)
    changed = of_model(onnx_frontend.load(model), semiring)
    return changed if isinstance(model, str | pathlib.Path) else onnx_frontend.to_proto(changed)


def _shows_inputs(target: Target) -> bool:
    """True if the target can return results as views of operands."""
    return target.options is not None and "views" in {each.name for each in fields(target.options)}


def _dtype(dtype: Any) -> np.dtype:
    """Return the NumPy type that ``dtype`` names; raises UsageError E656."""
    try:
        found: np.dtype = np.dtype(dtype)
        ir.DataType.from_numpy(found)
        return found
    except TypeError as error:
        raise UsageError(
            "E656",
            f"{dtype!r} is not an element type",
            why="it names no element type of NumPy or ml_dtypes",
            fix="dtype='float32'",
        ) from error


def _dims(shape: Sequence[int | str]) -> list[Dim]:
    """Return a shape as dims; raises UsageError E656."""
    try:
        if isinstance(shape, str):
            raise TypeError("a text is no sequence of names here")
        return [ir.SymbolicDim(n) if isinstance(n, str) else _size(index(n)) for n in shape]
    except TypeError as error:
        fix = "give a tuple of numbers or names for each operand"
        raise UsageError(
            "E656", f"{shape!r} is not a shape", fix=fix, why="a shape is a tuple of sizes"
        ) from error


def _size(size: int) -> int:
    """Return ``size``; raises UsageError E656 if it is negative."""
    if size < 0:
        raise UsageError(
            "E656",
            f"{size} cannot be the size of a dim",
            why="the size of a dim is a whole number of 0 or more, or a name",
            fix="give a number or a name",
        )
    return size


def _model(shapes: Sequence[Sequence[Dim]], dtype: np.dtype) -> ir.Model:
    """Return a model with the operands as inputs and no nodes."""
    names = [f"operand_{index}" for index in range(len(shapes))]
    pairs = (2,) if dtype.kind == "c" else ()
    kind = ir.TensorType(ir.DataType.from_numpy(np.zeros(0, dtype).real.dtype))
    inputs = [
        ir.Value(name=name, type=kind, shape=ir.Shape([*shape, *pairs]))
        for name, shape in zip(names, shapes, strict=True)
    ]
    for value in inputs if pairs else ():
        mark_pairs(value, str(dtype))
    imports = {"": OPSET, "smelt": 1}
    graph = ir.Graph(inputs, [], nodes=[], name="einsum", opset_imports=imports)
    return ir.Model(graph, ir_version=11)


def _contracted(
    model: ir.Model,
    whole: Equation,
    slices: Slices,
    sizes: Mapping[str, Dim],
    semiring: Semiring,
    attributes: dict[str, Any],
) -> ir.Value:
    """Add one smelt Einsum, or a loop over it, and return the model's output."""
    graph = model.graph
    pairs = (2,) if "pairs" in attributes else ()
    out = ir.Shape([*(sizes[label] for label in whole.out), *pairs])
    if slices.labels:
        sliced = {label: int(str(sizes[label])) for label in slices.labels}
        result = build_loop(model, whole, sliced, semiring, attributes, out)
    else:
        node = ir.node("Einsum", graph.inputs, attributes, domain="smelt", name="contraction")
        graph.append(node)
        (result,) = node.outputs
    result.name, result.type, result.shape = "result", graph.inputs[0].type, out
    graph.outputs.append(result)
    return result
