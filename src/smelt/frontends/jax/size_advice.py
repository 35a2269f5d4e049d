"""Advice on how to decide a comparison of sizes, and the ways in which it can go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from smelt.errors import SmeltError
from smelt.frontends.jax.multiples import callers_symbol, in_callers_names

AT_RUN_TIME = (
    "compute both results and choose by jnp.where(jnp.equal(a, b), ...), or by jax.lax.cond"
)
"""How to compare sizes in the model itself."""

_COMPARED = re.compile(r"comparison '(.+?)' (<=?|>=?|==|!=) '(.+?)' is inconclusive")
_REMAINDER = re.compile(r"mod\(([^()]+), (\d+)\)")
_QUOTIENT = re.compile(r"floordiv\(([^()]+), (\d+)\)")
_TERM = re.compile(r"\w+|(?:mod|floordiv)\([^()]+\)")
"""The left sides that JAX accepts in an equality constraint."""

_OPEN_SIZE = re.compile(r"\b(?:min|max)\(([^(),]+), ([^(),]+)\)")
"""The size of a slice that the symbols leave open, as JAX prints it: ``min(N, 27)``."""

_DIVISION = re.compile(r"\b(?:floordiv|mod)\(")
_MIRRORED = re.compile(r"axis size \(= (\w+)\) is larger than 1 .* padding length \(= (\d+)\)")
"""JAX's message about the sizes for which it can mirror an axis."""

_RANGE = re.compile(r"jnp\.arange argument '\w+'|In arange with non-constant arguments")
COUNTED = (
    "bounds made of a size have to be exact, as n / 2 is and n * 0.1 is not: count first, then make"
    " floats of it:"
    " jnp.arange(n + 1) * 1.0, jnp.arange(2 * n) * 0.5"
)
"""The advice for a range of floats whose bounds are symbolic: its length has to be a size."""

_DECIDING = {
    "<": (("<=", -1), (">=", 0)),
    "<=": (("<=", 0), (">=", 1)),
    ">": ((">=", 1), ("<=", 0)),
    ">=": ((">=", 0), ("<=", -1)),
    "==": (("<=", -1), (">=", 1)),
    "!=": (("<=", -1), (">=", 1)),
}
"""For each comparison, the two constraints that decide it: operator, and number added to the
bound."""


@dataclass(frozen=True)
class Way:
    """One case of a size comparison; ``text`` states it, as in ``N <= 3``.

    JAX is told by ``constraints``, or by ``assumed``: an equality that does not hold.
    """

    text: str
    constraints: tuple[str, ...] = ()
    assumed: str = ""


def ways_of(error: SmeltError) -> tuple[Way, ...]:
    """Return the cases of the size comparison that causes ``error``; one of them always holds.

    Empty if ``error`` is not known to come from an open size.
    """
    asked = _COMPARED.search(error.what)
    if asked is not None:
        return _ways(*asked.groups())
    found = _OPEN_SIZE.search(error.why) if error.code == "E113" else None
    if found is None:
        return ()
    return _ways(found.group(1), ">=", found.group(2))


def _ways(size: str, compared: str, bound: str) -> tuple[Way, ...]:
    """Return the two cases of ``size compared bound``."""
    if compared not in ("==", "!="):
        bounds = ((how, _more(bound, step)) for how, step in _DECIDING[compared])
        return tuple(_bounded(f"{size} {how} {limit}") for how, limit in bounds)
    same = f"{size} == {bound}"
    if _TERM.fullmatch(size):
        equal = Way(same, (same,))
    else:
        equal = Way(same, (f"{size} >= {bound}", f"{size} <= {bound}"))
    return equal, Way(f"{size} != {bound}", assumed=same)


def _bounded(text: str) -> Way:
    return Way(text, (text,))


def to_decide(message: str) -> str:
    """Return how to decide a comparison that JAX's ``message`` calls inconclusive."""
    asked = _COMPARED.search(message)
    if asked is None:
        return "give the dim as a number"
    size, compared, bound = map(as_python, asked.groups())
    is_equality = compared in ("==", "!=")
    advice = _of_remainder(size, bound if is_equality else "0") or _of_bounds(size, compared, bound)
    advice.append("give the dim as a number")
    if is_equality:
        if not bound.isdecimal():
            advice.insert(0, "give sizes that are equal the same name")
        advice.append(AT_RUN_TIME)
    return "; or ".join(advice)


def which_is_greater(message: str) -> str:
    """Return the constraint to state if ``message`` contains ``min(a, b)``; empty if it does
    not."""
    found = _OPEN_SIZE.search(message)
    if found is None:
        return ""
    size, bound = found.groups()
    if size.isdecimal():
        size, bound = bound, size
    which = f"'{size} >= {bound}' or '{size} <= {bound}'"
    return f"if {found.group()} is a size, say which by a constraint, {which}"


def mirroring_advice(message: str) -> str:
    """Return the constraint to state if ``message`` is about mirroring an axis of an open size."""
    found = _MIRRORED.search(message)
    return f"say so by a constraint, '{found[1]} >= {int(found[2]) + 1}'" if found else ""


def float_range_advice(message: str) -> str:
    """Return the advice for a range with float bounds if ``message`` is about one; else empty."""
    return COUNTED if _RANGE.search(message) else ""


def multiples_advice(message: str) -> str:
    """Return which dims to give as multiples if ``message`` contains quotients of sizes."""
    divisors: dict[str, int] = {}
    for found in _DIVISION.finditer(message):
        tree = _balanced(message[found.start() :])
        for name, divisor in _divisors(tree, 1) if tree is not None else ():
            divisors[name] = max(divisor, divisors.get(name, 1))
    if not divisors:
        return ""
    whole = (callers_symbol(name, divisor) for name, divisor in divisors.items())
    multiples = ", ".join(f"{divisor}*{name}" for name, divisor in whole)
    return f"where those sizes are quotients without a rest, say so in the specs: {multiples}"


def _balanced(text: str) -> ast.expr | None:
    """Return the call at the beginning of ``text``; None if its parentheses never close."""
    for found in re.finditer(r"\)", text):
        call = text[: found.end()]
        if call.count("(") == call.count(")"):
            return ast.parse(call.replace("^", "**"), mode="eval").body
    return None


def _divisors(tree: ast.expr, by: int) -> Iterator[tuple[str, int]]:
    """Yield the symbols in ``tree``, each with the product of its divisors."""
    match tree:
        case ast.Name(id=name):
            yield name, by
        case ast.Call(
            func=ast.Name(id="floordiv" | "mod"), args=[inner, ast.Constant(value=int(divisor))]
        ):
            yield from _divisors(inner, by * divisor)
        case ast.Call(args=parts):
            for part in parts:
                yield from _divisors(part, by)
        case ast.BinOp(left=left, right=right):
            yield from _divisors(left, by)
            yield from _divisors(right, by)
        case ast.UnaryOp(operand=operand):
            yield from _divisors(operand, by)


def _of_remainder(size: str, bound: str) -> list[str]:
    """Return advice for ``mod(N, 2) == 0``: make the dim a multiple, or state its remainder."""
    found = _REMAINDER.fullmatch(size)
    if found is None or not bound.isdecimal():
        return []
    divided, by = in_callers_names(found[1]), found[2]
    if not divided.isidentifier():
        return [f"say more by a constraint, '({divided}) % {by} == {bound}'"]
    more = f" or '{divided} % 2 == {1 - int(bound)}'" if by == "2" and bound in "01" else ""
    return [
        f"make the dim a multiple, as in 'f32[{by}*{divided},3]'",
        f"say more by a constraint, '{divided} % {by} == {bound}'{more}",
    ]


def as_python(text: str) -> str:
    """Return JAX's text of a size in Python's spelling."""
    return _QUOTIENT.sub(_divided, text)


def _divided(found: re.Match[str]) -> str:
    """Return ``floordiv(N, 2)`` in Python's spelling."""
    size, by = found.groups()
    return f"{size}//{by}" if size.isidentifier() else f"({size})//{by}"


def _of_bounds(size: str, compared: str, bound: str) -> list[str]:
    found = [f"'{size} {how} {_more(bound, step)}'" for how, step in _DECIDING[compared]]
    possible = [each for each in found if not each.endswith(("<= 0'", "<= -1'"))]
    if "mod(" in size + bound or not possible:
        return []
    return [f"say more by a constraint, {' or '.join(possible)}"]


def _more(bound: str, step: int) -> str:
    """Return ``bound + step`` as text."""
    if bound.lstrip("-").isdecimal():
        return str(int(bound) + step)
    return f"{bound} {'+' if step > 0 else '-'} {abs(step)}" if step else bound
