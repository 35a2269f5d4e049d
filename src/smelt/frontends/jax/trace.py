"""``trace``: a JAX function and its input specs in, an ``onnx_ir.Model`` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported, UsageError
from smelt.frontends.jax import bindings, compat, engine, keys, registry, specs
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.ir.build import Builder
from smelt.ir.shapes import ShapeInference
from smelt.operators import all_operators

IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13}
"""The ONNX file format of each opset, as ONNX released them together."""

OPSETS = range(18, 26)
"""The ONNX opsets that lowerings are written for."""


def trace(
    fn: Callable[..., Any],
    *input_specs: Any,
    opset: int = 23,
    x64: bool = False,
    name: str | None = None,
    constraints: Iterable[str] = (),
) -> ir.Model:
    """The model that computes ``fn`` for inputs like ``input_specs``.

    Each positional argument of ``fn`` has one spec: a pytree of arrays, ``jax.ShapeDtypeStruct``s
    (a dim may be a name) or strings such as ``"f32[B,28,28,1]"``. Symbols of one trace are one
    scope; each stands for a size of at least 1, further bounded by ``constraints`` such as
    ``"S % 8 == 0"``. Inputs are named after parameters and tree paths, outputs ``out`` and paths.
    ``x64`` enables 64-bit types as in JAX. Arrays that ``fn`` closes over become constants.

    Raises UsageError E104 for a bad spec, E107 for an opset out of range; an ErrorList of
    Unsupported E101, E105, E106 for everything in ``fn`` that has no lowering; E102 for a use of a
    primitive that its lowering does not cover; E103 for a size that no input determines.
    Errors of ``fn`` itself pass through.
    """
    if opset not in OPSETS:
        what = f"opset {opset} is not one of {OPSETS[0]} to {OPSETS[-1]}"
        raise UsageError("E107", what, fix=f"give opset={OPSETS[0]} to opset={OPSETS[-1]}")
    registry.load()
    arguments, leaves = specs.resolve(input_specs, constraints, x64)
    with compat.x64(x64), bindings.active():
        closed, out = compat.make_jaxpr(fn, arguments)
    _check_interface(closed.jaxpr)
    with compat.x64(x64):
        closed = keys.without_keys(closed)
    engine.check_supported(closed.jaxpr)
    inputs = specs.input_names(fn, arguments)
    outputs = specs.output_names(out, inputs)
    model = _empty_model(name or _name_of(fn), inputs, opset)
    cx = Lowering(Builder(model, model.graph, ShapeInference(model)))
    cx.pool.names = _parameter_names(fn, {*inputs, *outputs})
    with compat.x64(x64):
        operands = [_input(cx, v, aval) for v, aval in zip(model.graph.inputs, leaves, strict=True)]
        results = engine.run(cx, closed.jaxpr, closed.consts, operands)
        _return(cx, results, closed.jaxpr.outvars, outputs)
    return model


def _check_interface(jaxpr: compat.Jaxpr) -> None:
    for variable in (*jaxpr.invars, *jaxpr.outvars):
        aval: compat.Aval = variable.aval
        if not engine.has_onnx_type(aval):
            raise Unsupported(
                "E105",
                f"an input or output has the element type {aval.dtype}",
                why="ONNX has no such element type, or no operators for it",
                fix="split complex numbers into parts, and keep PRNG keys out of the interface",
            )


def _empty_model(name: str, inputs: list[str], opset: int) -> ir.Model:
    all_operators()  # Registers the shape rules of operators beyond ONNX.
    graph = ir.Graph(
        [ir.Value(name=input_name) for input_name in inputs],
        [],
        nodes=[],
        name=name,
        opset_imports={"": opset},
    )
    return ir.Model(graph, ir_version=IR_VERSIONS[opset], producer_name="smelt")


def _input(cx: Lowering, value: ir.Value, aval: Any) -> Operand:
    value.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(aval.dtype)))
    value.shape = cx.symbols.shape(aval.shape)
    cx.symbols.bind(value, aval.shape)
    return Operand(value, tuple(aval.shape))


def _return(
    cx: Lowering, results: list[Operand], atoms: list[compat.Atom], names: list[str]
) -> None:
    """Name the results and return them; each output is the result of a node of its own."""
    for operand, atom, name in zip(results, atoms, names, strict=True):
        value = cx.full(operand, atom).value
        if value.producer() is None or value.is_graph_output():
            value = cx.op("Identity", value)
            cx.settle(Operand(value, tuple(atom.aval.shape)), atom.aval, "out")
        value.name = name
        cx.builder.graph.outputs.append(value)


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def _parameter_names(fn: Callable[..., Any], taken: set[str]) -> dict[int, str]:
    """Names for the arrays of a function that is a pytree (an nnx or equinox module), by id."""
    if jax.tree_util.all_leaves([fn]):
        return {}
    leaves = [
        (specs.path_name(path), leaf)
        for path, leaf in jax.tree_util.tree_flatten_with_path(fn)[0]
        if hasattr(leaf, "dtype")
    ]
    names = specs.unique([name for name, _ in leaves], taken)
    return {id(leaf): name for name, (_, leaf) in zip(names, leaves, strict=True)}
