"""``trace``: convert a JAX function and its input specs to an ``onnx_ir.Model``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, UsageError
from smelt.frontends.jax import compat, registry
from smelt.frontends.jax.accurate_tails import expand_inaccurate
from smelt.frontends.jax.call import names, nnx_modules, specs
from smelt.frontends.jax.call.arguments import bind
from smelt.frontends.jax.call.parameters import choose
from smelt.frontends.jax.call.state import State, state_of
from smelt.frontends.jax.call.traced_weights import Weights, weights_of
from smelt.frontends.jax.complex_numbers import Whole, is_complex
from smelt.frontends.jax.complex_numbers.fourier import NODES_FROM
from smelt.frontends.jax.constants import ConstantPool
from smelt.frontends.jax.functions import library, selection
from smelt.frontends.jax.jaxprs import in_types_of_onnx, traced, with_patches
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.nodes import Shared
from smelt.frontends.jax.open_sizes import open_comparisons, size_choices
from smelt.frontends.jax.open_sizes.multiples import callers_names
from smelt.frontends.jax.open_sizes.symbols import Symbols
from smelt.frontends.jax.open_sizes.traced_cases import (
    Case,
    input_types,
    leaves_of,
    result_types,
    with_jaxprs,
)
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.replacement import replaced
from smelt.frontends.stablehlo.detect import is_exported
from smelt.frontends.stablehlo.exported import program_of
from smelt.frontends.weights import fill_weights
from smelt.ir.build import Builder
from smelt.ir.complex_pairs import mark_pairs
from smelt.ir.opsets.versions import TRACED, ir_version_of
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.empty_dims import note_never_empty, write_never_empty
from smelt.ir.symbolic_dims.size_constraints import note_constraints
from smelt.ir.tensors.missing_weights import EXPECTED, forget_unread
from smelt.operators import register_all
from smelt.spans import span


def trace(
    fn: Callable[..., Any],
    *input_specs: Any,
    kwargs: Mapping[str, Any] | None = None,
    static: Mapping[str, Any] | None = None,
    input_params: Sequence[str] | str = (),
    input_names: names.NewNames | None = None,
    output_names: names.NewNames | None = None,
    functions: selection.Functions = (),
    opset: int = 23,
    x64: bool | None = None,
    name: str | None = None,
    constraints: Iterable[str] = (),
    strict: bool = False,
    weights: Sequence[str] | str = (),
    checkpoint: str | Path | None = None,
    filling: Mapping[str, Any] | None = None,
    dft: bool = False,
    complex_dots: bool = False,
) -> ir.Model:
    """Return the ONNX model that computes ``fn`` for inputs like ``input_specs``.

    Each positional argument of ``fn`` has one spec: a pytree of arrays, of ``jax.ShapeDtypeStruct``
    objects (a dim may be a name) or of strings such as ``"f32[B,28,28,1]"``. A PRNG key,
    ``"key[]"`` as text, becomes the uint32 array of ``jax.random.key_data``; a complex array
    becomes a real one with a last dim of 2 (real and imaginary part). This holds for inputs and
    outputs. Symbols are shared by all specs, and each stands for a size of at least 1.

    - ``kwargs``: the specs of keyword arguments. ``static``: values that ``fn`` gets unchanged.
    - ``constraints``: further bounds of symbols, such as ``"S % 8 == 0"`` or ``"B >= 2"``.
    - ``input_names``, ``output_names``: new names for all in order, or a mapping from old names.
      Inputs are named after parameters and tree paths, outputs ``out`` and paths.
    - ``x64``: switch 64-bit types on or off; None keeps JAX's setting.
    - ``input_params``: patterns (``"layers_*_kernel"``) of arrays held by ``fn`` that become
      inputs, after the arguments. Other held arrays become constants.
    - ``functions``: classes whose calls become ONNX functions, as do calls of everything decorated
      with ``smelt.function``; also patterns of nnx and equinox class names, or ``"repeated"`` for
      every module that holds modules and is called alike twice.
    - ``weights``: patterns of arguments that become weights, named by their paths, as do arrays
      that ``fn`` holds as types only (``jax.eval_shape``, ``nnx.eval_shape``). ``checkpoint`` fills
      those without numbers, with the options ``filling`` of ``smelt.fill_weights``.
    - ``dft``: write Fourier transforms of known length as DFT nodes, from opset 20 on, as
      ``compile`` does for ``host`` and ``c``. By default they are matrix products, which every
      runtime has.
    - ``complex_dots``: write each product of complex arrays as one ``smelt.DotGeneral`` of pairs
      with flags for conjugates, as ``compile`` does for ``host`` and ``c``. By default it is four
      products of real and imaginary parts.
    - ``strict``: refuse what a model leaves out, with E101 (prints, checks of
      ``equinox.error_if``), and code that compares open sizes, with E112. By default, a warning
      names each left-out check, and for code such as ``if x.shape[0] > 3`` the model holds both
      branches and chooses by the size.

    Raises UsageError E104 for a bad spec, E107 for an opset out of range, E108 for bad names, E109
    for arguments that ``fn`` does not take, E110, E111 and E115 for bad ``input_params``,
    ``functions`` and ``weights``, E113 for an exception or a non-array result of ``fn``; an
    ErrorList of Unsupported E101, E105 and E106 for everything in ``fn`` without a lowering; E102
    for a use of a primitive that its lowering does not cover; E103 for a size that no input
    determines; InvalidModel E302 for bytes that are not an exported function.
    """
    _check_opset(opset)
    with span("import lowerings"):
        registry.RULES.fill()
    if is_exported(fn):
        fn, x64 = program_of(fn), True
        input_specs, kwargs = fn.arguments_or_own(input_specs, kwargs)
    elif isinstance(fn, bytes | bytearray):
        raise _not_exported()
    x64 = compat.has_x64() if x64 is None else x64

    # Trace: one jaxpr, or several cases of sizes.
    arguments = bind(fn, input_specs, kwargs or {}, static or {})
    state = state_of(fn)
    parameters = choose(state, input_params)
    trace_structs = partial(traced, fn, arguments, parameters, x64, strict)
    with callers_names():
        texts = tuple(constraints)
        structs, leaves = specs.resolve(arguments.specs, texts, x64)
        constraint_texts = specs.constraints_on(leaves, texts)
        case = with_patches(trace_structs, structs, functions, strict)
    for leaf in leaves_of(case):
        nnx_modules.check_not_random(leaf.closed, state)
    read_parameters = parameters.read([leaf.closed for leaf in leaves_of(case)])
    case = with_jaxprs(case, partial(parameters.with_inputs, read=read_parameters))
    source_jaxpr, out = leaves_of(case)[-1].closed.jaxpr, leaves_of(case)[-1].out

    # Name inputs, weights, outputs and constants.
    weight_patterns = (weights,) if isinstance(weights, str) else tuple(weights)
    model_weights = weights_of(arguments, weight_patterns, parameters, read_parameters)
    all_inputs = names.input_names(arguments.parameters, structs)
    all_inputs += names.unique(read_parameters, set(all_inputs))
    inputs = names.renamed(model_weights.without(all_inputs), input_names, "input")
    outputs = names.renamed(names.output_names(out, inputs), output_names, "output")
    names.check_disjoint(inputs, outputs)
    used_names = {*inputs, *outputs, *model_weights.names.values()}
    constant_names = _constant_names(state, used_names)

    whole = Whole(dft and opset >= NODES_FROM, complex_dots)
    # Represent keys and complex numbers, then lower.
    with compat.x64(x64), replaced(open_comparisons.ORDERED):
        case = with_jaxprs(case, partial(in_types_of_onnx, whole=whole))
    model = _empty_model(name or _name_of(fn), inputs, opset)
    with callers_names(), compat.x64(x64), span("lower"):
        _lower(model, case, compat.leaves(structs), constant_names, model_weights, outputs)
    _describe(model.graph.inputs, model_weights.without(source_jaxpr.invars))
    _describe(model.graph.outputs, source_jaxpr.outvars)
    write_never_empty(model)
    note_constraints(model, constraint_texts)
    if checkpoint is not None:
        fill_weights(model, checkpoint, **(filling or {}))
    return model


def _not_exported() -> InvalidModel:
    """Return E302 for bytes that are not an exported function."""
    return InvalidModel(
        "E302",
        "these bytes are not an exported function",
        why="they do not hold a module that serialize() of jax.export wrote",
        fix="trace the bytes of exported.serialize(); smelt.load reads a model of ONNX",
    )


def _constant_names(state: State, used_names: set[str]) -> dict[Hashable, str]:
    """Return a name, not in ``used_names``, for each array of ``state`` by its identity."""
    constants = names.unique(list(state.arrays), used_names)
    return dict(zip(map(compat.identity, state.arrays.values()), constants, strict=True))


def _lower(
    model: ir.Model,
    case: Case,
    structs: Sequence[Any],
    constants: Mapping[Hashable, str],
    weights: Weights,
    outputs: list[str],
) -> None:
    """Fill ``model`` with the computation of ``case`` for inputs specified by ``structs``.

    ``constants`` maps the identity of an array to its name.
    """
    builder = Builder(model, model.graph, ShapeInference(model))
    bodies = library.Library()
    shared = Shared(builder, Symbols(builder), ConstantPool(builder, constants), bodies)
    cx = Lowering(builder, shared)
    values = iter(model.graph.inputs)
    operands = []
    for index, aval in enumerate(input_types(case, structs)):
        if index in weights.leaves:
            operands.append(weights.operand(builder, index, aval))
        else:
            operands.append(_input(cx, next(values), aval))
    types = result_types(case)
    _return(cx, size_choices.lower(cx, case, operands, types), types, outputs)
    library.inline_called_once(model, bodies, builder.shapes)
    expand_inaccurate(model, builder.shapes)
    forget_unread(model)
    model.graph.meta[EXPECTED] = weights.expected


def _check_opset(opset: int) -> None:
    """Raise UsageError E107 if smelt does not write ``opset``."""
    if opset not in TRACED:
        what = f"opset {opset} is not one of {TRACED[0]} to {TRACED[-1]}"
        raise UsageError(
            "E107",
            what,
            fix=f"give opset={TRACED[0]} to opset={TRACED[-1]}",
            why="smelt writes only operators of these opsets",
        )


def _empty_model(name: str, inputs: list[str], opset: int) -> ir.Model:
    """Return a model of ``opset`` with these inputs and no nodes."""
    register_all()
    graph = ir.Graph(
        [ir.Value(name=input_name) for input_name in inputs],
        [],
        nodes=[],
        name=name,
        opset_imports={"": opset},
    )
    model = ir.Model(graph, ir_version=ir_version_of({"": opset}), producer_name="smelt")
    note_never_empty(model)
    return model


def _describe(values: Sequence[ir.Value], atoms: Sequence[compat.Atom]) -> None:
    """Record in each value which JAX type it stands for: a PRNG key or a complex array."""
    for value, atom in zip(values, atoms, strict=True):
        note = specs.note(atom.aval)
        if note:
            value.doc_string = note
        if is_complex(atom.aval.dtype):
            mark_pairs(value, compat.short_type(atom.aval))


def _input(cx: Lowering, value: ir.Value, aval: Any) -> Operand:
    """Return the graph input ``value`` as an Operand, typed by ``aval``; its sizes bind symbols."""
    value.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(aval.dtype)))
    value.shape = cx.symbols.shape(aval.shape)
    cx.symbols.bind(value, aval.shape)
    return Operand(value, tuple(aval.shape))


def _return(
    cx: Lowering, results: list[Operand], types: Sequence[compat.Aval], names: list[str]
) -> None:
    """Add the results to the graph as outputs with these names.

    ONNX needs distinct outputs that nodes compute. Other results get an Identity.
    """
    for operand, aval, name in zip(results, types, names, strict=True):
        value = operand.value
        if value.producer() is None or value.is_graph_output():
            value = cx.op("Identity", value)
            cx.set_type(Operand(value, tuple(aval.shape)), aval, "out")
        value.name = name
        cx.builder.graph.outputs.append(value)


def _name_of(fn: Callable[..., Any]) -> str:
    """Return the name of ``fn``, or of its type."""
    return getattr(fn, "__name__", None) or type(fn).__name__
