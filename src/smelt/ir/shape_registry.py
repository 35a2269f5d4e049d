"""The shape rules of onnx-shape-inference and ours over them, in a registry that only smelt asks.

The library has one registry for the whole process, and its walk over a model asks that one. Others
in the process may use it too, so ours is apart, and so is the walk that asks ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType, SimpleNamespace
from typing import TypeAlias

import onnx_ir as ir
from onnx_shape_inference import OpShapeInferenceRegistry, ShapeInferenceContext
from onnx_shape_inference import registry as _theirs

from smelt.errors import InternalError
from smelt.ir import scope
from smelt.ir.invented_dims import invented_names
from smelt.ir.loop_states import open_states
from smelt.ir.state_types import type_states

ShapeRule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], None]

registry = OpShapeInferenceRegistry()
"""What smelt registers and asks."""

WALK = "onnx_shape_inference._engine"
"""The module of the library that walks over models."""

NAMED = "_registry"
"""What that module calls the one with the registry."""

NAMES = "_constraints", "collect_symbol_names"
"""What it calls the one that finds the names of dims, and the function for it. That one reads each
name as an expression, which names such as ``a::b`` are not."""

PROPAGATE = "_propagate_types_to_subgraph_inputs"
"""What it calls the function that tells the body of a loop which types it gets."""


@cache
def take_over() -> None:
    """Let our registry begin with the rules of the library."""
    for domain, op_type, versions in _theirs.iter_supported():
        if registry.has(domain, op_type):
            continue  # One of ours, registered as its operator was declared.
        for version in versions:
            rule = _theirs.get(domain, op_type, version)
            if rule is not None:
                registry.register(domain, op_type, since_version=version)(rule)


def rewrap(wrap: Callable[[ShapeRule], ShapeRule], domain: str, op_type: str) -> None:
    """Put what ``wrap`` makes of it in the place of the rule of each version of an operator.

    The registry keeps what was registered before and lists its version again: each version is
    wrapped once all the same.
    """
    for version in dict.fromkeys(registry.version_boundaries(domain, op_type)):
        rule = registry.get(domain, op_type, version)
        if rule is not None:
            registry.register(domain, op_type, since_version=version)(wrap(rule))


def infer_everything(model: ir.Model) -> None:
    """Infer every value of ``model``; what is inferred wins over what the model declares.

    What a Reshape says of sizes is not taken for true everywhere (the library would): in a branch
    that is for N = 1 alone, a Reshape of N elements to one says so, and every 1 would become N.
    """
    _walk().infer_symbolic_shapes(
        model, policy="override", warn_on_missing=False, adopt_declared_symbols=False
    )


@cache
def _walk() -> ModuleType:
    """The library's module once more, with our registry in the place of its own."""
    spec = find_spec(WALK)
    if spec is None or spec.loader is None:
        raise InternalError("E902", f"there is no module {WALK}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(getattr(module, NAMED, None), "registry"):
        raise InternalError("E902", f"{WALK} does not ask {NAMED}.registry any more")
    setattr(module, NAMED, SimpleNamespace(registry=registry))
    constraints, collect = NAMES
    if not hasattr(getattr(module, constraints, None), collect):
        raise InternalError("E902", f"{WALK} does not ask {constraints}.{collect} any more")
    setattr(module, constraints, SimpleNamespace(**{collect: _invented_below}))
    if not hasattr(module, PROPAGATE):
        raise InternalError("E902", f"{WALK} does not call {PROPAGATE} any more")
    setattr(module, PROPAGATE, _with_types(getattr(module, PROPAGATE)))
    return module


def _with_types(theirs: ShapeRule) -> ShapeRule:
    def propagate(context: ShapeInferenceContext, node: ir.Node) -> None:
        type_states(node)
        theirs(context, node)
        open_states(context, node)

    return propagate


def _invented_below(graph: ir.Graph) -> set[str]:
    """The names in ``graph`` of the form that inference makes up, so that it makes up others."""
    return invented_names(
        value
        for inner in scope.graphs_below(graph)
        for value in (*inner.inputs, *(output for node in inner for output in node.outputs))
    )
