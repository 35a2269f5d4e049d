"""Advice for a comparison of sizes whose answer depends on the symbols, and its possible cases."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from smelt.errors import SmeltError
from smelt.frontends.jax.open_sizes.multiples import callers_symbol, in_callers_names

DYNAMIC = "compute both results and choose by jnp.where(jnp.equal(a, b), ...), or by jax.lax.cond"
"""Advice: how to let the model compare the sizes in each run."""

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
EXACT_BOUNDS = (
    "give exact bounds (n / 2 is exact, n * 0.1 is not), or count in integers and scale afterwards:"
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
"""For each comparison, the two constraints that decide it: operator, and number added to the bound.

``N < 4`` is decided by ``N <= 3`` and by ``N >= 4``.
"""


@dataclass(frozen=True)
class SizeCase:
    """One case of a size comparison; ``text`` states it, as in ``N <= 3``.

    JAX gets the case as ``constraints``, or as ``assumed``: an equality that is false.
    """

    text: str
    constraints: tuple[str, ...] = ()
    assumed: str = ""


def cases_of_comparison(error: SmeltError) -> tuple[SizeCase, ...]:
    """Return the cases of the size comparison behind ``error``; one of them always holds.

    JAX's message states the comparison: ``comparison 'N' < '4' is inconclusive``. An error of the
    function itself (E113) may print an open size such as ``min(N, 27)``. Its cases are ``N >= 27``
    and ``N <= 26``. Empty for other errors.
    """
    comparison = _COMPARED.search(error.what)
    if comparison is not None:
        return _two_cases(*comparison.groups())
    extreme = _OPEN_SIZE.search(error.why) if error.code == "E113" else None
    if extreme is None:
        return ()
    return _two_cases(extreme.group(1), ">=", extreme.group(2))


def _two_cases(size: str, relation: str, bound: str) -> tuple[SizeCase, ...]:
    """Return the two cases of ``size relation bound``: it is true, or it is false.

    JAX accepts equality constraints of symbols and their quotients only. For other sizes, two
    bounds state the equality.
    """
    if relation not in ("==", "!="):
        texts = (f"{size} {decides} {_plus(bound, step)}" for decides, step in _DECIDING[relation])
        return tuple(SizeCase(text, (text,)) for text in texts)
    equality = f"{size} == {bound}"
    if _TERM.fullmatch(size):
        equal = SizeCase(equality, (equality,))
    else:
        equal = SizeCase(equality, (f"{size} >= {bound}", f"{size} <= {bound}"))
    return equal, SizeCase(f"{size} != {bound}", assumed=equality)


def comparison_advice(message: str) -> str:
    """Return how to decide a comparison that JAX's ``message`` calls inconclusive."""
    comparison = _COMPARED.search(message)
    if comparison is None:
        return "give the dim as a number"
    size, relation, bound = map(as_python, comparison.groups())
    is_equality = relation in ("==", "!=")
    advice = _remainder_advice(size, bound if is_equality else "0") or _bounds_advice(
        size, relation, bound
    )
    advice.append("give the dim as a number")
    if is_equality:
        if not bound.isdecimal():
            advice.insert(0, "give sizes that are equal the same name")
        advice.append(DYNAMIC)
    return "; or ".join(advice)


def extreme_advice(message: str) -> str:
    """Return the advice to add a constraint that decides ``min(a, b)`` in ``message``.

    Empty if the message contains no minimum or maximum.
    """
    extreme = _OPEN_SIZE.search(message)
    if extreme is None:
        return ""
    size, bound = extreme.groups()
    if size.isdecimal():
        size, bound = bound, size
    constraints = f"'{size} >= {bound}' or '{size} <= {bound}'"
    return f"if {extreme.group()} is a size, add a constraint, {constraints}"


def mirroring_advice(message: str) -> str:
    """Return the advice to add a constraint if ``message`` is about mirroring an axis.

    Empty for other messages.
    """
    mirrored = _MIRRORED.search(message)
    if mirrored is None:
        return ""
    axis_size, padding = mirrored.groups()
    return f"add a constraint, '{axis_size} >= {int(padding) + 1}'"


def float_range_advice(message: str) -> str:
    """Return the advice for a range with float bounds; empty for other messages."""
    return EXACT_BOUNDS if _RANGE.search(message) else ""


def multiples_advice(message: str) -> str:
    """Return the advice to write dims as multiples if ``message`` contains quotients of sizes.

    For ``floordiv(S, 2)`` the advice is ``2*S``: JAX divides a multiple without remainder.
    """
    divisors: dict[str, int] = {}
    for division in _DIVISION.finditer(message):
        tree = _balanced(message[division.start() :])
        if tree is None:
            continue
        for name, divisor in _divisors(tree, 1):
            divisors[name] = max(divisor, divisors.get(name, 1))
    if not divisors:
        return ""
    symbols = (callers_symbol(name, divisor) for name, divisor in divisors.items())
    multiples = ", ".join(f"{divisor}*{name}" for name, divisor in symbols)
    return f"if those divisions leave no remainder, write the dims as multiples: {multiples}"


def _balanced(text: str) -> ast.expr | None:
    """Return the call at the beginning of ``text``; None if its parentheses never close."""
    for closing in re.finditer(r"\)", text):
        call = text[: closing.end()]
        if call.count("(") == call.count(")"):
            return ast.parse(call.replace("^", "**"), mode="eval").body
    return None


def _divisors(tree: ast.expr, product: int) -> Iterator[tuple[str, int]]:
    """Yield ``(symbol, product of its divisors)`` for each symbol in ``tree``.

    ``product`` is the product of the divisors around ``tree``.
    """
    match tree:
        case ast.Name(id=name):
            yield name, product
        case ast.Call(
            func=ast.Name(id="floordiv" | "mod"), args=[inner, ast.Constant(value=int(divisor))]
        ):
            yield from _divisors(inner, product * divisor)
        case ast.Call(args=parts):
            for part in parts:
                yield from _divisors(part, product)
        case ast.BinOp(left=left, right=right):
            yield from _divisors(left, product)
            yield from _divisors(right, product)
        case ast.UnaryOp(operand=operand):
            yield from _divisors(operand, product)


def _remainder_advice(size: str, bound: str) -> list[str]:
    """Return advice for ``mod(N, 2) == 0``: make the dim a multiple, or state its remainder."""
    remainder = _REMAINDER.fullmatch(size)
    if remainder is None or not bound.isdecimal():
        return []
    divided, divisor = in_callers_names(remainder[1]), remainder[2]
    if not divided.isidentifier():
        return [f"add a constraint, '({divided}) % {divisor} == {bound}'"]
    other_remainder = (
        f" or '{divided} % 2 == {1 - int(bound)}'" if divisor == "2" and bound in "01" else ""
    )
    return [
        f"make the dim a multiple, as in 'f32[{divisor}*{divided},3]'",
        f"add a constraint, '{divided} % {divisor} == {bound}'{other_remainder}",
    ]


def as_python(text: str) -> str:
    """Return ``text``, a size as JAX prints it, with ``N//2`` for ``floordiv(N, 2)``."""
    return _QUOTIENT.sub(_python_quotient, text)


def _python_quotient(match: re.Match[str]) -> str:
    """Return the matched ``floordiv(N, 2)`` as ``N//2``."""
    size, by = match.groups()
    return f"{size}//{by}" if size.isidentifier() else f"({size})//{by}"


def _bounds_advice(size: str, relation: str, bound: str) -> list[str]:
    """Return advice for a comparison with ``bound``: the constraints that decide it."""
    deciding = _DECIDING[relation]
    constraints = [f"'{size} {decides} {_plus(bound, step)}'" for decides, step in deciding]
    # JAX takes symbols to be at least 1.
    possible = [text for text in constraints if not text.endswith(("<= 0'", "<= -1'"))]
    if "mod(" in size + bound or not possible:
        return []
    return [f"add a constraint, {' or '.join(possible)}"]


def _plus(bound: str, step: int) -> str:
    """Return ``bound + step`` as text: ``N + 1``, or ``4`` for ``3`` and 1."""
    if bound.lstrip("-").isdecimal():
        return str(int(bound) + step)
    return f"{bound} {'+' if step > 0 else '-'} {abs(step)}" if step else bound
