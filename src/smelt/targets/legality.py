"""Check whether a selected graph is within the limits of a target; report all problems together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, Unsupported, UsageError
from smelt.ir import scope
from smelt.ir.bounds import Bounds, bounds_of, has_unbounded_dim
from smelt.ir.partition import is_constant_node
from smelt.ir.symbolic_dims.dims import binding_advice, unnamed_dims
from smelt.program.legality import and_more, no_element_type, no_kernel
from smelt.targets.attribution import attribute_errors_to, call_with_options
from smelt.targets.base import Target
from smelt.targets.support import support

NO_BOUNDS: Mapping[str, Bounds] = {}
NOT_PRODUCED = "no selection rule and no decomposition produces it"


def check_limits(model: ir.Model, target: Target, options: Any = None) -> None:
    """Raise an ErrorList of everything that ``target`` does not support: E201, E401 to E404, E407.

    ``options`` are its options.
    """
    has_open_dims = list(_dims(model, target))
    problems = [
        *_opset(model, target),
        *has_open_dims,
        *_ranks(model, target),
        *_empty_tensors(model, target),
        *_operators(model, target, bool(has_open_dims)),
        *_dtypes(model, target, options),
        *_unaccepted_errors(model, target, options),
    ]
    if problems:
        raise ErrorList(problems)


def refusal(
    target: Target[Any, Any],
    node: ir.Node,
    bounds: Mapping[str, Bounds] = NO_BOUNDS,
    options: Any = None,
) -> str:
    """Return why ``target`` does not support ``node`` with its inner graphs; empty if it does.

    ``bounds`` are the bounds of runtime sizes, ``options`` the target's options.
    """
    for each in (node, *scope.nested_nodes(node)):
        values = [value for value in (*each.inputs, *each.outputs) if value is not None]
        why = (
            _exceeded_limit(target, each, values, bounds, options)
            or (each is node and _reason_unaccepted(target, each, options))
            or ""
        )
        if why:
            return why
    return ""


def _exceeded_limit(
    target: Target[Any, Any],
    node: ir.Node,
    values: Sequence[ir.Value],
    bounds: Mapping[str, Bounds],
    options: Any,
) -> str:
    """Return which limit of the target ``node`` exceeds; empty if none."""
    limits = target.limits
    if not support(target, node.domain, node.op_type).takes:
        return _reason_unlisted(target, node.domain, node.op_type)
    more: frozenset[ir.DataType] = getattr(options, "further_types", frozenset())
    if limits.dtypes is not None and any(
        v.dtype is not None and v.dtype not in limits.dtypes | more for v in values
    ):
        return "an element type that it lacks"
    if limits.max_rank is not None and any(
        value.shape is not None and len(value.shape) > limits.max_rank for value in values
    ):
        return f"more than {limits.max_rank} dims"
    known = bounds if limits.bounded_dims else NO_BOUNDS
    if not limits.empty_tensors and any(0 in (value.shape or ()) for value in values):
        return "a dim of size 0"
    if not limits.dynamic_dims and any(has_unbounded_dim(value, known) for value in values):
        return "sizes that have no bounds" if limits.bounded_dims else "sizes that are not fixed"
    return ""


def _reason_unlisted(target: Target[Any, Any], domain: str, op_type: str) -> str:
    """Return why an operator is refused that ``limits.operators`` does not list."""
    if (domain, op_type) in {operator.key for operator in target.operators}:
        return (
            f"`limits.operators` of {target.name!r} does not list this operator of its own domain"
        )
    return NOT_PRODUCED


def _reason_unaccepted(target: Target[Any, Any], node: ir.Node, options: Any) -> str:
    """Return the reason that the target's ``accepts`` gives against ``node``; empty if none."""
    if target.accepts is None:
        return ""
    with attribute_errors_to(target, "accepts"):
        accepted = call_with_options(target.accepts, node, options)
    if not isinstance(accepted, bool | np.bool_ | str):
        raise UsageError(
            "E649",
            f"`accepts` of target {target.name!r} returned {repr(accepted)[:40]}",
            at=f"node {node.name!r} ({node.op_type})",
            fix="return True, or False, or the reason why not as text",
            why="accepts decides whether the target supports a node",
        )
    if isinstance(accepted, str):
        return accepted
    return "" if accepted else "it does not accept this node"


def _unaccepted_errors(
    model: ir.Model, target: Target[Any, Any], options: Any
) -> Iterator[SmeltError]:
    """Yield one error for each operator and reason that ``accepts`` refuses within the limits."""
    unaccepted: dict[tuple[str, str, str], list[ir.Node]] = {}
    for node in model.graph if target.accepts is not None else ():
        if not _may_support(target, node, has_open_dims=False) or is_constant_node(node):
            continue
        why = _reason_unaccepted(target, node, options)
        if why:
            unaccepted.setdefault((node.domain, node.op_type, why), []).append(node)
    for (domain, op_type, why), nodes in unaccepted.items():
        more = and_more(len(nodes))
        yield Unsupported(
            "E201",
            f"target {target.name!r} does not take this {f'{domain}.' if domain else ''}{op_type}",
            at=f"node {nodes[0].name!r}{more}",
            why=why,
            fix="let another target run it: `--fallback host`, or `fallback=` of smelt.compile",
        )


def _opset(model: ir.Model, target: Target) -> Iterator[SmeltError]:
    """Yield an error if the model's opset is out of range."""
    lowest, highest = target.limits.opset
    opset = model.opset_imports.get("", lowest)
    if not lowest <= opset <= highest:
        yield Unsupported(
            "E403",
            f"target {target.name!r} takes ONNX opset {lowest} to {highest}; the model has {opset}",
            why="the target reads operators as they are at these opsets",
            fix=f"raise it with opset={lowest}" if opset < lowest else "export at a lower opset",
        )


def _dims(model: ir.Model, target: Target) -> Iterator[SmeltError]:
    """Yield an error if inputs have symbolic dims that the target does not support."""
    if target.limits.dynamic_dims:
        return
    types = []
    bounds = bounds_of(model.graph) if target.limits.bounded_dims else {}
    unnamed = unnamed_dims(model.graph.inputs)
    for value in model.graph.inputs:
        if has_unbounded_dim(value, bounds):
            dims = value.shape.dims if value.shape is not None else ()
            names = [unnamed.get((value, axis), str(dim)) for axis, dim in enumerate(dims)]
            types.append(f"input {value.name!r} {_type(value, names)}")
    if types:
        yield Unsupported(
            "E401",
            f"target {target.name!r} needs fixed shapes",
            at=types,
            why=target.limits.why_fixed,
            fix=_binding_advice(model, target) or "give the inputs fixed shapes",
        )


def _binding_advice(model: ir.Model, target: Target) -> str:
    """Return advice to bind the dims, or to bound them if the target supports bounds."""
    advice = binding_advice(model.graph.inputs)
    if not advice or not target.limits.bounded_dims:
        return advice
    return f"{advice}; or bound them, as in --dim NAME=1..16"


def _ranks(model: ir.Model, target: Target) -> Iterator[SmeltError]:
    """Yield an error if a value has too many dims."""
    highest = target.limits.max_rank
    if highest is None:
        return
    values = [*model.graph.inputs, *(v for node in scope.nodes(model) for v in node.outputs)]
    high = [value for value in values if value.shape is not None and len(value.shape) > highest]
    if high:
        yield Unsupported(
            "E404",
            f"target {target.name!r} takes values of at most {highest} dims",
            at=[f"value {value.name!r} has {len(value.shape or ())}" for value in high[:4]],
            why="its arrays have no more",
            fix="merge dims of the model, or choose another target: `smelt targets`",
        )


def empty_tensor(target: str, place: str, fix: str = "") -> Unsupported:
    """Return error E407 for a value at ``place`` with a dim of 0."""
    return Unsupported(
        "E407",
        f"target {target!r} takes no empty tensors",
        at=place,
        why="it has no dim of size 0",
        fix=fix or "give the dim a size of 1 or more",
    )


def _empty_tensors(model: ir.Model, target: Target) -> Iterator[SmeltError]:
    """Yield an error for each value with a dim of 0, if the target has none."""
    if target.limits.empty_tensors:
        return
    values = [*model.graph.inputs, *(v for node in scope.nodes(model) for v in node.outputs)]
    for value in values:
        if value.shape is not None and any(dim == 0 for dim in value.shape):
            yield empty_tensor(target.name, f"value {value.name!r} {_type(value)}")


def _operators(model: ir.Model, target: Target, has_open_dims: bool) -> Iterator[SmeltError]:
    """Yield one error for each operator that the target does not support."""
    missing: dict[tuple[str, str], list[ir.Node]] = {}
    for node in scope.nodes(model):
        if not _may_support(target, node, has_open_dims):
            missing.setdefault((node.domain, node.op_type), []).append(node)
    for (domain, op_type), nodes in missing.items():
        name = f"{domain}.{op_type}" if domain else op_type
        first = nodes[0]
        operand = next((v for v in first.inputs if v is not None), None)
        read = f", input 0 {_type(operand)}" if operand is not None else ""
        at = f"node {first.name!r}{read}{and_more(len(nodes))}"
        yield no_kernel(target.name, name, at, _reason_unlisted(target, domain, op_type))


def _may_support(target: Target, node: ir.Node, has_open_dims: bool) -> bool:
    """False if ``target`` does not list the node, or can have no kernel for it at any size.

    Without a list of operators, the lowering decides later. With ``has_open_dims``, an error about
    sizes comes before the lowering, so nodes that read data, and so cannot be folded, are reported
    with it. Loops are not, because they may be unrolled.
    """
    known = target.limits.operators
    if known is not None:
        return (node.domain, node.op_type) in known
    if (
        not has_open_dims
        or target.kernels is None
        or node.domain
        or node.op_type in scope.GRAPH_CARRIERS
    ):
        return True
    return node.op_type in target.kernels or not any(map(_is_data, node.inputs))


def _is_data(value: ir.Value | None) -> bool:
    """True for a non-constant float value of at least two dims, which holds no sizes."""
    if value is None or value.const_value is not None or value.dtype is None:
        return False
    return value.dtype.is_floating_point() and value.shape is not None and len(value.shape) > 1


def _dtypes(model: ir.Model, target: Target, options: Any) -> Iterator[SmeltError]:
    """Yield one error for each element type that the target does not support."""
    allowed = target.limits.dtypes
    if allowed is None:
        return
    allowed |= getattr(options, "further_types", frozenset())
    first_of: dict[ir.DataType, ir.Value] = {}
    computed = (value for node in scope.nodes(model) for value in node.outputs)
    ports = {*model.graph.inputs, *model.graph.outputs}
    for value in (*model.graph.inputs, *computed):
        is_allowed = value in ports and value.dtype in target.limits.interface_dtypes
        if value.dtype is not None and not is_allowed:
            first_of.setdefault(value.dtype, value)
    for dtype, value in first_of.items():
        if dtype not in allowed:
            at = f"value {value.name!r} {_type(value)}"
            fix = target.limits.remedies.get(dtype, "")
            yield no_element_type(target.name, dtype, allowed, at, fix)


def _type(value: ir.Value, dims: Sequence[object] = ()) -> str:
    """Return the type of ``value`` as text, with its dims named ``dims`` if given."""
    dtype = value.dtype.name.lower() if value.dtype is not None else "?"
    if value.shape is None:
        return f"{dtype}[?]"
    return f"{dtype}[{','.join(map(str, dims or value.shape.dims))}]"
