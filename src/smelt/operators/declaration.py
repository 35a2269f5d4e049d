"""Checks declarations of operators, and reports everything that is wrong at once.

A declaration is used long after it is made, in compiles that may not involve the operator, so
mistakes must not reach the registry.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.operators.attributes import Attribute

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DOMAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
ONNX = ("", "ai.onnx")

PARAMETERS = {
    "infer": ("inputs", "attributes"),
    "reference": ("inputs", "attributes"),
    "body": ("builder", "inputs", "attributes"),
}
"""The parameters of each function of an operator."""

_NUMBER, _TEXT = (int, float), (str,)
DEFAULTS: Mapping[ir.AttributeType, tuple[bool, tuple[type, ...]]] = {
    ir.AttributeType.INT: (False, (int,)),
    ir.AttributeType.FLOAT: (False, _NUMBER),
    ir.AttributeType.STRING: (False, _TEXT),
    ir.AttributeType.INTS: (True, (int,)),
    ir.AttributeType.FLOATS: (True, _NUMBER),
    ir.AttributeType.STRINGS: (True, _TEXT),
}
"""Attribute types of operators: whether a value is a tuple, and of what."""


def check_operator(operator: Any) -> None:
    """Raise UsageError E644 with all errors in the declaration of ``operator``."""
    problems = [
        *_names(operator),
        *_attributes(operator),
        *_functions(operator),
        *_other_fields(operator),
    ]
    if problems:
        name = f"{_value_text(operator.name)} of domain {_value_text(operator.domain)}"
        raise UsageError(
            "E644",
            f"the declaration of operator {name} is wrong",
            at=problems,
            fix="docs/add-an-operator.md shows how",
            why="the fields above do not have the types or values that an Operator needs",
        )


def _value_text(value: object) -> str:
    """Return ``value`` for a message, at most 60 characters."""
    return repr(value)[:60]


def _names(operator: Any) -> Iterator[str]:
    """Yield errors in domain, name, inputs and outputs."""
    domain = operator.domain
    if domain in ONNX:
        yield "domain: the domain of ONNX is reserved; choose another one"
    elif not isinstance(domain, str) or not DOMAIN.fullmatch(domain):
        yield f"domain: {_value_text(domain)} is not words joined by dots"
    if not isinstance(operator.name, str) or not NAME.fullmatch(operator.name):
        yield f"name: {_value_text(operator.name)} is not an identifier"
    for kind in ("inputs", "outputs"):
        yield from _formal_names(kind, getattr(operator, kind))
    if operator.outputs == ():
        yield "outputs: the tuple is empty"


def _formal_names(kind: str, names: object) -> Iterator[str]:
    """Yield errors in ``names``, the field ``kind`` of a declaration: ``inputs`` or ``outputs``."""
    if not isinstance(names, tuple):
        yield f"{kind}: {_value_text(names)} is not a tuple of names"
        return
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name.removesuffix("?")):
            text = _value_text(name)
            yield f"{kind}: {text} is not an identifier, with a '?' behind it if optional"
    if len(set(names)) < len(names):
        yield f"{kind}: a name occurs twice"


def _attributes(operator: Any) -> Iterator[str]:
    """Yield errors in the attributes."""
    if not isinstance(operator.attributes, tuple):
        yield f"attributes: {_value_text(operator.attributes)} is not a tuple of Attributes"
        return
    for attribute in operator.attributes:
        if not isinstance(attribute, Attribute):
            yield f"attributes: {_value_text(attribute)} is not an Attribute"
        elif not isinstance(attribute.name, str) or not NAME.fullmatch(attribute.name):
            yield f"attributes: {_value_text(attribute.name)} is not an identifier"
        elif attribute.type not in DEFAULTS:
            text = _value_text(attribute.type)
            yield f"attribute {attribute.name}: {text} is not the type of a value"
        elif not _has_own_type(attribute):
            problem = f"{_value_text(attribute.default)} is not of type {attribute.type.name}"
            yield f"attribute {attribute.name}: its default {problem}"
        elif attribute.required and attribute.default is not None:
            yield f"attribute {attribute.name}: it is required, and has a default"
    names = [getattr(attribute, "name", None) for attribute in operator.attributes]
    if len(set(map(str, names))) < len(names):
        yield "attributes: a name occurs twice"


def _has_own_type(attribute: Attribute) -> bool:
    """True if the default of ``attribute`` has the attribute's type, or is None."""
    if attribute.default is None:
        return True
    several, kinds = DEFAULTS[attribute.type]
    if several != isinstance(attribute.default, tuple):
        return False
    values: tuple[object, ...] = attribute.default if several else (attribute.default,)  # type: ignore[assignment]
    return all(isinstance(value, kinds) for value in values)


def _functions(operator: Any) -> Iterator[str]:
    """Yield errors in the functions of a declaration."""
    for name, parameters in PARAMETERS.items():
        function: Any = getattr(operator, name)
        if function is None and name == "body":
            continue
        if not callable(function):
            yield f"{name}: {_value_text(function)} is not a function"
        elif not accepts_arguments(function, len(parameters)):
            yield f"{name}: it cannot be called with ({', '.join(parameters)})"


def accepts_arguments(function: Callable[..., Any], count: int) -> bool:
    """True if ``function`` can be called with ``count`` arguments, or has no signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # a builtin has no signature
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _other_fields(operator: Any) -> Iterator[str]:
    """Yield errors in the other fields of a declaration."""
    for name in ("opset", "version"):
        number = getattr(operator, name)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            yield f"{name}: {_value_text(number)} is not a number of 1 or more"
    if not isinstance(operator.any_rank, bool):
        yield f"any_rank: {_value_text(operator.any_rank)} is neither True nor False"
    if not isinstance(operator.summary, str):
        yield f"summary: {_value_text(operator.summary)} is not text"
