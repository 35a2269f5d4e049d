"""The value of a size from its C text: sums, products, quotients, comparisons and choices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

_TOKEN = re.compile(r"\s*(>=|<=|!=|==|&&|\w+|.)")
_LEVELS = (("&&",), ("<", ">", "<=", ">=", "!=", "=="), ("+", "-"), ("*", "/", "%"))
"""Operators from the loosest to the tightest; a choice ``a ? b : c`` is looser."""


def value_of(text: str, variables: Mapping[str, Any]) -> int:
    """Return the value of a C expression of integers, for values of its variables."""
    return int(eval(_compiled(text), {"__builtins__": {}, "int": int}, dict(variables)))


@cache
def _compiled(text: str) -> Any:
    """Return the expression as Python code."""
    tokens = [*_TOKEN.findall(text), ""]
    python = _choice(tokens)
    assert tokens == [""], text
    return compile(python, "<size>", "eval")


def _choice(tokens: list[str]) -> str:
    """Take a choice off the tokens, and return it in Python."""
    condition = _binary(tokens, 0)
    if tokens[0] != "?":
        return condition
    tokens.pop(0)
    then = _choice(tokens)
    assert tokens.pop(0) == ":"
    return f"({then} if {condition} else {_choice(tokens)})"


def _binary(tokens: list[str], level: int) -> str:
    """Take operands of one level and their operators off the tokens, and return them in Python."""
    if level == len(_LEVELS):
        return _operand(tokens)
    left = _binary(tokens, level + 1)
    while tokens[0] in _LEVELS[level]:
        operator = tokens.pop(0)
        right = _binary(tokens, level + 1)
        combined = f"({left} {operator.replace('&&', 'and')} {right})"
        left = f"int{combined}" if operator == "/" else combined  # C rounds towards 0
    return left


def _operand(tokens: list[str]) -> str:
    """Take a name, a number, a negative operand or parentheses off the tokens."""
    token = tokens.pop(0)
    if token == "-":
        return f"(-{_operand(tokens)})"
    if token != "(":
        return token
    inner = _choice(tokens)
    assert tokens.pop(0) == ")"
    return f"({inner})"
