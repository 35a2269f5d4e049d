"""Describe operators and targets as plain data from the registries, for ``smelt explain``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar, get_type_hints

from smelt import operators
from smelt.errors import UsageError
from smelt.ir import opset
from smelt.passes import pipeline as language
from smelt.passes.operator_uses import operator_uses
from smelt.passes.registry import passes
from smelt.program.lower.registry import lowering_of
from smelt.targets.base import Target
from smelt.targets.phases import phases
from smelt.targets.registry import find_target, target_names
from smelt.targets.support import support

Facts: TypeAlias = dict[str, Any]
T = TypeVar("T")


def describe_target(target: Target) -> Facts:
    """Return the limits, options, operators, passes and phases of a target; None stands for all.

    ``kernels`` are the ONNX operators that it computes, or that its passes rewrite to such ones.
    """
    limits = target.limits
    return {
        "name": target.name,
        "summary": target.summary,
        "dtypes": _sorted_texts(limits.dtypes, lambda dtype: dtype.name.lower()),
        "dynamic_dims": limits.dynamic_dims,
        "bounded_dims": limits.bounded_dims,
        "max_rank": limits.max_rank,
        "opset": list(limits.opset),
        "functions": target.functions,
        "tolerance": target.tolerance,
        "options": options_of(target),
        "kernels": _sorted_texts(target.kernels, str),
        "own_operators": [f"{each.domain}.{each.name}" for each in target.operators],
        "extensions": _sorted_texts(target.extensions, ".".join),
        "passes": language.to_text(language.parse(target.passes)),
        "phases": phases(target),
    }


def options_of(target: Target) -> dict[str, Facts]:
    """Return the options of ``target`` by name, each with its type and its default."""
    if target.options is None:
        return {}
    kinds = get_type_hints(target.options)
    default = target.options()
    return {
        field.name: {
            "type": getattr(kinds[field.name], "__name__", str(kinds[field.name])),
            "default": getattr(default, field.name),
        }
        for field in dataclasses.fields(target.options)
    }


def describe_operator(domain: str, op_type: str) -> Facts:
    """Return the signature of an operator, the targets that support it, and the
    passes that use it.
    """
    uses = operator_uses(domain, op_type, passes().values())
    return {
        "domain": domain,
        "name": op_type,
        **(_signature(domain, op_type) or _by_schema(domain, op_type)),
        "program": _lowering_docstring(domain, op_type),
        "targets": {name: _support(name, domain, op_type) for name in target_names()},
        "passes": {
            "look_for_it": [pass_.spelling for pass_ in uses.matching],
            "make_it": [pass_.spelling for pass_ in uses.making],
            "name_it": [pass_.spelling for pass_ in uses.mentioning],
        },
    }


def _by_schema(domain: str, op_type: str) -> Facts:
    """Return the signature of an operator of ONNX from its newest schema."""
    versions = opset.versions(op_type, domain)
    schema = opset.schema(op_type, versions[-1], domain)
    assert schema is not None, "a version of an operator has a schema"
    return {
        "summary": _first_sentence(str(schema.doc or "")),
        "since": list(versions),
        "deprecated": schema.deprecated,
        "inputs": [_port(each) for each in schema.inputs],
        "outputs": [_port(each) for each in schema.outputs],
        "attributes": {
            name: _default(name, each, op_type, domain, versions[-1])
            for name, each in sorted(schema.attributes.items())
        },
    }


def _default(name: str, attribute: Any, op_type: str, domain: str, version: int) -> Any:
    """Return the default of an attribute as JSON data, "required" if it has none."""
    if attribute.required:
        return "required"
    value = opset.default_attribute(op_type, name, version, domain)
    return list(value) if isinstance(value, tuple) else value


def _port(formal: Any) -> str:
    """Return a formal operand's name, with ``?`` if it is optional and ``...`` if it may repeat."""
    mark = {"Optional": "?", "Variadic": "..."}.get(formal.option.name, "")
    return f"{formal.name}{mark}"


def _signature(domain: str, op_type: str) -> Facts | None:
    """Return the signature of an operator that smelt or a package declares; None for others."""
    operator = operators.find(domain, op_type)
    if operator is None:
        return None
    return {
        "summary": operator.summary,
        "since": [operator.version],
        "deprecated": False,
        "inputs": list(operator.inputs),
        "outputs": list(operator.outputs),
        "attributes": {
            each.name: "required" if each.required else each.default for each in operator.attributes
        },
    }


def _lowering_docstring(domain: str, op_type: str) -> str | None:
    """Return the docstring of the operator's lowering to a Program; None if there is none."""
    lowering = None if domain else lowering_of(op_type)
    return None if lowering is None else " ".join((inspect.getdoc(lowering) or "").split())


def _support(name: str, domain: str, op_type: str) -> Facts:
    """Return whether the target supports the operator, why not, and on which element types."""
    try:
        target = find_target(name)
    except UsageError as error:
        return {"takes": False, "why": error.what, "dtypes": None}
    supported = support(target, domain, op_type)
    dtypes = list(supported.dtypes) if supported.dtypes is not None else None
    return {"takes": supported.takes, "why": supported.why, "dtypes": dtypes}


def _first_sentence(text: str) -> str:
    """Return the first sentence of a schema's documentation, on one line."""
    line = " ".join(text.strip().split("\n\n")[0].split())
    end = line.find(". ")
    return line[: end + 1] if end > 0 else line


def _sorted_texts(items: Iterable[T] | None, text: Callable[[T], str]) -> list[str] | None:
    """Return the texts of ``items``, sorted; None for None."""
    return None if items is None else sorted(map(text, items))
