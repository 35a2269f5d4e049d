"""What to say about sizes so that a comparison of them is decided."""

from __future__ import annotations

import re

AT_RUN_TIME = (
    "compute both results and choose by jnp.where(jnp.equal(a, b), ...), or by jax.lax.cond"
)
"""How a model itself asks whether sizes are equal."""

_COMPARED = re.compile(r"comparison '(.+?)' (<=?|>=?|==|!=) '(.+?)' is inconclusive")
_REMAINDER = re.compile(r"mod\(([^()]+), (\d+)\)")
_QUOTIENT = re.compile(r"floordiv\(([^()]+), (\d+)\)")
_OPEN_SIZE = re.compile(r"\b(?:min|max)\(([^(),]+), ([^(),]+)\)")
"""How JAX writes the size of a slice that the symbols leave open, such as ``min(N, 27)``."""

_DECIDING = {
    "<": (("<=", -1), (">=", 0)),
    "<=": (("<=", 0), (">=", 1)),
    ">": ((">=", 1), ("<=", 0)),
    ">=": ((">=", 0), ("<=", -1)),
    "==": (("<=", -1), (">=", 1)),
    "!=": (("<=", -1), (">=", 1)),
}
"""For a comparison with a bound, the constraints that make it true or false: what is known of the
size, and what is added to the bound."""


def to_decide(message: str) -> str:
    """What to do about a comparison that JAX says, by ``message``, is inconclusive."""
    asked = _COMPARED.search(message)
    if asked is None:
        return "give the dim as a number"
    size, compared, bound = (_QUOTIENT.sub(_divided, part) for part in asked.groups())
    is_equality = compared in ("==", "!=")
    advice = _of_remainder(size, bound if is_equality else "0") or _of_bounds(size, compared, bound)
    advice.append("give the dim as a number")
    if is_equality:
        if not bound.isdecimal():
            advice.insert(0, "give sizes that are equal the same name")
        advice.append(AT_RUN_TIME)
    return "; or ".join(advice)


def which_is_greater(message: str) -> str:
    """What to state where ``message`` has a size that is one of two; empty if it has none."""
    found = _OPEN_SIZE.search(message)
    if found is None:
        return ""
    size, bound = found.groups()
    if size.isdecimal():
        size, bound = bound, size
    which = f"'{size} >= {bound}' or '{size} <= {bound}'"
    return f"if {found.group()} is a size, say which by a constraint, {which}"


def _of_remainder(size: str, bound: str) -> list[str]:
    """For ``mod(N, 2) == 0``: that the dim is a multiple, or what its remainder is."""
    found = _REMAINDER.fullmatch(size)
    if found is None or not bound.isdecimal():
        return []
    divided, by = found.groups()
    if not divided.isidentifier():
        return [f"say more by a constraint, '({divided}) % {by} == {bound}'"]
    more = f" or '{divided} % 2 == {1 - int(bound)}'" if by == "2" and bound in "01" else ""
    return [
        f"make the dim a multiple, as in 'f32[{by}*{divided},3]'",
        f"say more by a constraint, '{divided} % {by} == {bound}'{more}",
    ]


def _divided(found: re.Match[str]) -> str:
    """``floordiv(N, 2)`` as Python spells it."""
    size, by = found.groups()
    return f"{size}//{by}" if size.isidentifier() else f"({size})//{by}"


def _of_bounds(size: str, compared: str, bound: str) -> list[str]:
    found = [f"'{size} {how} {_more(bound, step)}'" for how, step in _DECIDING[compared]]
    possible = [each for each in found if not each.endswith(("<= 0'", "<= -1'"))]
    if "mod(" in size + bound or not possible:
        return []
    return [f"say more by a constraint, {' or '.join(possible)}"]


def _more(bound: str, step: int) -> str:
    """``bound + step``."""
    if bound.lstrip("-").isdecimal():
        return str(int(bound) + step)
    return f"{bound} {'+' if step > 0 else '-'} {abs(step)}" if step else bound
