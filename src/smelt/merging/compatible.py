"""Bring two models to one opset, and check that their operators and functions mean the same."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import SmeltError, UsageError
from smelt.frontends.onnx import raise_opset
from smelt.frontends.onnx.mapped import HAD_EXTERNAL_DATA


def make_compatible(models: tuple[ir.Model, ir.Model], names: tuple[str, str]) -> None:
    """Raise both models to the higher of their ONNX opsets, and unite their imports.

    Raises E230 if an operator cannot be raised, E667 if the models import two versions of another
    domain, and E668 if they define a function of one name with different bodies.
    """
    _check_domains(models, names)
    goal = max(model.opset_imports.get("", 0) for model in models)
    for model in models:
        if 0 < model.opset_imports.get("", 0) < goal:
            raise_opset(model, goal)
    _check_functions(models, names)


def add_imports(into: ir.Model, other: ir.Model) -> None:
    """Add the imports and functions of ``other`` to ``into``.

    The result is saved with external data if one of the models had external data.
    """
    for domain, version in other.opset_imports.items():
        into.opset_imports.setdefault(domain, version)
    if other.graph.meta.get(HAD_EXTERNAL_DATA):
        into.graph.meta[HAD_EXTERNAL_DATA] = True
    into.ir_version = max(into.ir_version, other.ir_version)
    for key, function in other.functions.items():
        into.functions.setdefault(key, function)


def _check_domains(models: tuple[ir.Model, ir.Model], names: tuple[str, str]) -> None:
    """Raise E667 if the models import different versions of a domain other than ONNX's."""
    first, second = (model.opset_imports for model in models)
    for domain in first.keys() & second.keys() - {""}:
        if first[domain] != second[domain]:
            raise UsageError(
                "E667",
                f"the models import different versions of the operator set {domain!r}",
                at=[f"{names[0]}: {first[domain]}", f"{names[1]}: {second[domain]}"],
                why="a file has one version of each operator set, and smelt raises only ONNX's own",
                fix="export both models with the same versions",
            )


def _check_functions(models: tuple[ir.Model, ir.Model], names: tuple[str, str]) -> None:
    """Raise E668 if the models have functions of one name with different bodies."""
    first, second = (model.functions for model in models)
    for key in first.keys() & second.keys():
        if _body(first[key]) != _body(second[key]):
            domain, name, _ = key
            raise _two_bodies(f"{domain}::{name}", names)


def _two_bodies(function: str, names: tuple[str, str]) -> SmeltError:
    """Return E668 for ``function``."""
    return UsageError(
        "E668",
        f"both models define the function {function!r}, with different bodies",
        at=list(names),
        why="a file has one body for each function",
        fix="run `smelt optimize` on both models first: it inlines functions",
    )


def _body(function: ir.Function) -> bytes:
    """Return ``function`` as serialized bytes, by which two functions are compared."""
    return bytes(ir.to_proto(function).SerializeToString(deterministic=True))
