"""Find out from declarations whether a target supports an operator, and on which element types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from smelt import operators
from smelt.ir import opset
from smelt.targets.base import Target

TYPES = {f"tensor({dtype.name.lower()})": dtype for dtype in ir.DataType}
"""Element types by their names in ONNX schemas."""

NO_KERNEL = "it has no kernel for it"
BY_BODY = "by its body of ONNX operators"
INLINES = "inline-operator-bodies"
"""The pass that replaces operators without a kernel by their bodies."""


@dataclass(frozen=True)
class Support:
    """Whether a target supports an operator, and ``why`` not, or how; ``dtypes`` is None if
    unknown.

    The target may still refuse some forms, such as certain attributes, which only a compile shows.
    """

    takes: bool
    why: str = ""
    dtypes: tuple[str, ...] | None = None


def support(target: Target, domain: str, op_type: str) -> Support:
    """Return whether ``target`` supports the operator ``domain.op_type``."""
    key = domain, op_type
    if target.limits.operators is not None and key not in target.limits.operators:
        return Support(False, "it is not among the operators of the target")
    if key in {operator.key for operator in target.operators}:
        return Support(True, "its own", _dtypes(target, domain, op_type))
    declared = operators.find(domain, op_type)
    if declared is None:
        known = target.kernels is None or (not domain and op_type in target.kernels)
    elif target.extensions is not None:
        # An operator declared after the target has a kernel from its formula or reference.
        known = key in target.extensions or target.element_types(domain, op_type) is not None
        if not known and declared.body is not None and INLINES in target.passes:
            return Support(True, BY_BODY)
    elif declared.body is None:
        return Support(False, "ONNX cannot express it")
    else:
        return Support(True, BY_BODY, _dtypes(target, domain, op_type))
    return (
        Support(True, "", _dtypes(target, domain, op_type)) if known else Support(False, NO_KERNEL)
    )


def operators_beyond_onnx(target: Target) -> frozenset[tuple[str, str]]:
    """Return the operators beyond ONNX that passes may create: its own and its ``extensions``."""
    return frozenset(operator.key for operator in target.operators).union(target.extensions or ())


def kernels_of(target: Target, fallback: Target | None) -> frozenset[str] | None:
    """Return the ONNX operators that passes may create; None for all.

    They are the operators that ``target`` lists, or else those of its ``fallback`` and its limits.
    """
    if fallback is None or target.kernels is not None:
        return target.kernels
    if fallback.kernels is None:
        return None
    listed = target.limits.operators or ()
    return fallback.kernels | {op_type for domain, op_type in listed if not domain}


def computes_of(
    target: Target, fallback: Target | None
) -> Callable[[ir.Model, ir.Node], bool] | None:
    """Return a predicate: true if ``target`` or ``fallback`` computes a node as written.

    None if the target does not say.
    """
    target_computes, other = target.computes, fallback.computes if fallback is not None else None
    if fallback is None or other is None:
        return target_computes
    listed = target.limits.operators or ()

    def computes(model: ir.Model, node: ir.Node) -> bool:
        """True if either target computes ``node`` as written."""
        if (node.domain, node.op_type) in listed or (
            target_computes is not None and target_computes(model, node)
        ):
            return True
        return other(model, node)

    return computes


def _dtypes(target: Target, domain: str, op_type: str) -> tuple[str, ...] | None:
    """Return the element types that the operator, the target and its kernel all support."""
    target_types = (schema_types(domain, op_type), target.element_types(domain, op_type))
    if target_types == (None, None):
        return None
    stated = (*target_types, target.limits.dtypes)
    stated_sets = [set(types) for types in stated if types is not None]
    return tuple(sorted(dtype.name.lower() for dtype in set.intersection(*stated_sets)))


def schema_types(domain: str, op_type: str) -> frozenset[ir.DataType] | None:
    """Return the element types that ONNX allows for an operator's first input; None if unknown."""
    versions = opset.versions(op_type, domain)
    schema = opset.schema(op_type, versions[-1], domain) if versions else None
    if schema is None or not schema.inputs:
        return None
    return frozenset(TYPES[text] for text in schema.inputs[0].types if text in TYPES) or None


def whole_operators(target: Target) -> dict[str, bool]:
    """Return the options of ``trace`` for operators on complex numbers that ``target`` computes."""
    declares = target.computes is not None
    return {
        "dft": declares and target.kernels is not None and "DFT" in target.kernels,
        "complex_dots": declares and ("smelt", "DotGeneral") in (target.extensions or ()),
    }
