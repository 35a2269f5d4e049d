"""The shape rules of onnx-shape-inference and of smelt, in a registry that only smelt uses.

The library has one registry for the whole process, and its walk over a model uses that one. Other
users of the library may rely on it, so smelt has its own registry and its own copy of the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType, SimpleNamespace
from typing import TypeAlias

import onnx_ir as ir
from onnx_shape_inference import OpShapeInferenceRegistry, ShapeInferenceContext
from onnx_shape_inference import registry as library_registry

from smelt.errors import InternalError
from smelt.ir import scope
from smelt.ir.shapes.loop_states import open_states
from smelt.ir.shapes.state_types import type_states
from smelt.ir.symbolic_dims.invented_dims import invented_names

ShapeRule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], None]

registry = OpShapeInferenceRegistry()
"""smelt's registry."""

WALK = "onnx_shape_inference._engine"
"""The library module that walks over models; the next three are names in it."""

REGISTRY_NAME = "_registry"
"""The module that holds the registry of rules."""

SYMBOLS_NAME = "_constraints", "collect_symbol_names"
"""The module and its function that collects the names of dims. That function parses each name as an
expression, which fails for names such as ``a::b``."""

LOOP_TYPES_NAME = "_propagate_types_to_subgraph_inputs"
"""The function that sets the types of the inputs of a loop body."""


@cache
def take_over() -> None:
    """Copy the library's rules into smelt's registry."""
    for domain, op_type, versions in library_registry.iter_supported():
        if registry.has(domain, op_type):
            continue  # smelt registered it with its operator
        for version in versions:
            rule = library_registry.get(domain, op_type, version)
            if rule is not None:
                registry.register(domain, op_type, since_version=version)(rule)


def rewrap(wrap: Callable[[ShapeRule], ShapeRule], domain: str, op_type: str) -> None:
    """Replace the rule of each version of an operator by ``wrap(rule)``.

    The registry keeps replaced rules and lists their versions again; each version is wrapped once.
    """
    for version in dict.fromkeys(registry.version_boundaries(domain, op_type)):
        rule = registry.get(domain, op_type, version)
        if rule is not None:
            registry.register(domain, op_type, since_version=version)(wrap(rule))


def infer_everything(model: ir.Model) -> None:
    """Infer every value of ``model``; inferred facts override declared ones.

    A Reshape implies that two products of sizes are equal. The library can apply such equalities to
    the whole model; here that is off. A branch for N = 1 reshapes N elements to one, which would
    turn every 1 of the model into N.
    """
    _own_walk_module().infer_symbolic_shapes(
        model, policy="override", warn_on_missing=False, adopt_declared_symbols=False
    )


@cache
def _own_walk_module() -> ModuleType:
    """Return smelt's own instance of the library module ``WALK``, with three names replaced.

    The instance uses smelt's registry, reads names of dims without parsing them, and types loop
    states. Raises InternalError if a name is missing, because the library has changed.
    """
    spec = find_spec(WALK)
    if spec is None or spec.loader is None:
        raise _changed(f"there is no module {WALK}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(getattr(module, REGISTRY_NAME, None), "registry"):
        raise _changed(f"{WALK} has no {REGISTRY_NAME}.registry")
    setattr(module, REGISTRY_NAME, SimpleNamespace(registry=registry))
    constraints, collect = SYMBOLS_NAME
    if not hasattr(getattr(module, constraints, None), collect):
        raise _changed(f"{WALK} has no {constraints}.{collect}")
    setattr(module, constraints, SimpleNamespace(**{collect: _invented_below}))
    if not hasattr(module, LOOP_TYPES_NAME):
        raise _changed(f"{WALK} has no {LOOP_TYPES_NAME}")
    setattr(module, LOOP_TYPES_NAME, _with_types(getattr(module, LOOP_TYPES_NAME)))
    return module


def _changed(what: str) -> InternalError:
    """Return error E902 for a name that the installed onnx_ir lacks."""
    return InternalError(
        "E902",
        what,
        why=f"the installed onnx_ir {ir.__version__} has changed inside",
        fix="install a version of onnx_ir that smelt supports (constraints.txt names one), and "
        "report the version",
    )


def _with_types(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the function that sets the types of a loop body's inputs, so that it also sets the
    shapes of loop states.
    """

    def propagate(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Set the types of loop states, then the types and shapes of the body's inputs."""
        type_states(node)
        library_rule(context, node)
        open_states(context, node)

    return propagate


def _invented_below(graph: ir.Graph) -> set[str]:
    """Return the invented names in ``graph`` and its subgraphs; inference must invent others."""
    return invented_names(
        value
        for inner in scope.graphs_below(graph)
        for value in (*inner.inputs, *(output for node in inner for output in node.outputs))
    )
