"""Compile tensor networks from einsum equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.compiler import compile_model
from smelt.errors import ErrorList, Unsupported
from smelt.ir.build import Builder
from smelt.ir.complex_pairs import mark_pairs
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.inference import ShapeInference
from smelt.networks.arguments import items_of
from smelt.networks.constants import constant_arrays, fold_constants
from smelt.networks.equations import dims_of, equation_of, limit_of, type_over
from smelt.networks.network import Contraction, Network
from smelt.operators import expand
from smelt.operators.contraction import Equation
from smelt.operators.contraction_paths import Optimize, Path
from smelt.operators.contraction_slices import Slices, slices_of
from smelt.operators.einsum import OPERATOR as EINSUM
from smelt.operators.semiring import Semiring, semiring_of
from smelt.operators.sliced_einsum import build_loop
from smelt.targets.base import Artifact, Target
from smelt.targets.host.options import default_engine
from smelt.targets.registry import find_target

OPSET = 23


def compile_einsum(
    equation: str,
    shapes: Sequence[Any],
    dtype: Any = np.float32,
    *,
    target: str | Target = "host",
    semiring: str | Semiring = "sum_product",
    optimize: Optimize = "auto",
    memory_limit: int | str | None = None,
    constants: Sequence[int] | None = None,
    **options: Any,
) -> Contraction:
    """Compile a contraction: ``smelt.compile_einsum("ab,bc->ac", [(2, 3), (3, 4)])(x, y)``.

    ``equation`` is a ``numpy.einsum`` equation, with any characters as labels, for operands of
    ``shapes`` (numbers or names, or arrays that have the shape) and one ``dtype``; a size of 1
    broadcasts. The artifact takes an array for each operand and returns one result, all of
    ``dtype``; contiguous arrays are not copied. On ``host``, a result that only shows elements of
    an operand, such as ``"ab->ba"``, is a read-only view, unless ``views=False``.

    ``semiring`` defines plus and times: a name, such as ``max_plus``, or a ``Semiring``. Operands
    are contracted in pairs along the path of ``optimize``: a finder of opt_einsum or cotengra, its
    name, a path, or a ``ContractionTree``, whose slices are kept. No intermediate has more than
    ``memory_limit`` elements, if given (``"max_input"``: those of the largest operand); where no
    path allows that, some dims are looped over. ``constants`` numbers the operands whose arrays
    ``shapes`` gives: calls leave them out, and products of constants are computed now. ``options``
    are those of the target.

    Raises UsageError E655 for an equation, E656 for shapes or a dtype, E657 for a semiring, E658
    for a path, E699 for another wrong argument, and what ``smelt.compile`` raises.
    """
    shapes = items_of("shapes", shapes, "shape or array")
    algebra = semiring_of(semiring)
    given = type_over(dtype, algebra)
    parsed, sizes = equation_of(equation, [dims_of(shape) for shape in shapes])
    shapes_of: list[Sequence[Dim]] = [dims_of(shape) for shape in shapes]
    fixed = constant_arrays(constants, shapes, given)
    limit = limit_of(memory_limit, parsed, sizes)
    slices = slices_of(parsed, sizes, optimize, limit)
    network = Network(parsed, sizes, slices, given, algebra, tuple(fixed.items()), options, limit)
    chosen = find_target(target)
    if fixed and not slices.labels:

        def contract(inner: Equation, path: Path, arrays: Sequence[np.ndarray]) -> np.ndarray:
            """Return the contraction of ``arrays``, computed now by NumPy."""
            sizes_here = {label: sizes[label] for term in inner.terms for label in term}
            part = Network(
                inner, sizes_here, Slices((), inner, path), given, algebra, (), {"engine": "numpy"}
            )
            (result,) = _artifact(part, [list(a.shape) for a in arrays], find_target("host"))(
                *arrays
            )
            return np.asarray(result)

        folded, path, fixed = fold_constants(parsed, slices.path, fixed, contract)
        slices = Slices((), folded, path)
        network = replace(network, slices=slices, constants=tuple(fixed.items()), equation=folded)
        shapes_of = [[sizes[label] for label in term] for term in folded.terms]
    return Contraction.of(_artifact(network, shapes_of, chosen), network)


def artifact_of_slice(network: Network, target: str, threads: int | None = None) -> Artifact:
    """Return the artifact that contracts one slice; it takes the constants as operands, too.

    Its products run on ``threads`` threads, if given.

    It is compiled before its first call, not in the background: calls by NumPy, and later by C,
    would differ in bits.
    """
    inner = network.slices.equation
    options = dict(network.options) if target == "host" else {}
    if options.get("engine", default_engine()) == "auto":
        options["engine"] = "native"
    if threads is not None:
        options["threads"] = threads
    sizes = network.sizes
    part = replace(
        network,
        equation=inner,
        slices=Slices((), inner, network.slices.path),
        constants=(),
        options={**options, "views": False},
    )
    shapes = [[sizes[label] for label in term] for term in inner.terms]
    return _artifact(part, shapes, find_target("host"))


def _artifact(network: Network, shapes: Sequence[Sequence[Dim]], target: Target) -> Artifact:
    """Return the artifact that contracts ``network``, whose operands have ``shapes``."""
    slices, dtype = network.slices, network.dtype
    attributes: dict[str, Any] = {
        "equation": str(slices.equation),
        "semiring": str(network.semiring),
    }
    if dtype.kind == "c":
        attributes["pairs"] = 1
    if slices.path:
        attributes["path"] = [number for pair in slices.path for number in pair]
    model, operands = model_of(shapes, dtype, dict(network.constants))
    result = _contracted(model, operands, network, attributes)
    if dtype.kind == "c":
        mark_pairs(result, str(dtype))
    return compiled_model(model, target, dict(network.options), is_whole=not slices.labels)


def compiled_model(
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


def _shows_inputs(target: Target) -> bool:
    """True if the target has the option ``views``: results may be views of operands."""
    return target.options is not None and "views" in {each.name for each in fields(target.options)}


def model_of(
    shapes: Sequence[Sequence[Dim]], dtype: np.dtype, constants: Mapping[int, np.ndarray]
) -> tuple[ir.Model, list[ir.Value]]:
    """Return a model without nodes, and its operands: inputs, and initializers for constants."""
    pairs = (2,) if dtype.kind == "c" else ()
    kind = ir.TensorType(ir.DataType.from_numpy(np.zeros(0, dtype).real.dtype))
    graph = ir.Graph([], [], nodes=[], name="einsum", opset_imports={"": OPSET, "smelt": 1})
    model = ir.Model(graph, ir_version=11)
    b = Builder(model, graph, ShapeInference(model))
    operands: list[ir.Value] = []
    for number, shape in enumerate(shapes):
        if number in constants:
            array = np.ascontiguousarray(constants[number])
            array = array.view(array.real.dtype) if pairs else array
            value = b.constant(
                array.reshape((*constants[number].shape, *pairs)), f"constant_{number}"
            )
        else:
            name = f"operand_{number}"
            value = ir.Value(name=name, type=kind, shape=ir.Shape([*shape, *pairs]))
            graph.inputs.append(value)
            if pairs:
                mark_pairs(value, str(dtype))
        operands.append(value)
    return model, operands


def _contracted(
    model: ir.Model, operands: Sequence[ir.Value], network: Network, attributes: dict[str, Any]
) -> ir.Value:
    """Add one Einsum of smelt, or loops over one if the network is sliced; return the output."""
    graph, slices = model.graph, network.slices
    pairs = (2,) if "pairs" in attributes else ()
    out = ir.Shape([*(network.sizes[label] for label in network.equation.out), *pairs])
    if slices.labels:
        result = build_loop(
            model, operands, network.equation, network.sliced, network.semiring, attributes, out
        )
    else:
        node = ir.node("Einsum", operands, attributes, domain="smelt", name="contraction")
        graph.append(node)
        (result,) = node.outputs
    result.name, result.type, result.shape = "result", operands[0].type, out
    graph.outputs.append(result)
    return result
