"""The errors for a traced function that raises, or returns a value that is not an array.

The mistake is the user's, and so is the line that the error names: the innermost one outside of
smelt, JAX and other installed libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smelt.errors import SmeltError, Unsupported, UsageError
from smelt.frontends.jax import compat
from smelt.frontends.jax.open_sizes.size_advice import (
    comparison_advice,
    extreme_advice,
    float_range_advice,
    mirroring_advice,
    multiples_advice,
)
from smelt.frontends.jax.references import is_reference
from smelt.frontends.jax.source_lines import defined_at, is_own, raised_at

LINES = 6
"""How many lines of a message are shown."""

_LINK = re.compile(r"https://\S*jax\S*/errors\.html#\S+")
_DEPENDS = re.compile(r"depends on the value of the arguments? (.+?)\.?(?:\n|$)")
_ARGUMENT = re.compile(r"argument_values\[(\d+)\]")
"""How JAX's messages name an argument: by the parameter of ``call`` in ``jaxprs.py``."""

ADVICE: Mapping[str, str] = {
    "TracerBoolConversionError": "choose by jnp.where or jax.lax.cond, or make the condition a"
    " static argument (--static NAME=VALUE)",
    "ConcretizationTypeError": "make the argument static (--static NAME=VALUE), or compute it with"
    " jax.numpy",
    "TracerArrayConversionError": "call functions of jax.numpy instead of numpy",
    "TracerIntegerConversionError": "make the argument static (--static NAME=VALUE), or index with"
    " jnp.take or jax.lax.dynamic_index_in_dim",
    "NonConcreteBooleanIndexError": "use jnp.where(mask, x, 0), or jnp.nonzero with size=",
    "UnexpectedTracerError": "return the array instead of storing it outside of the function",
}
"""The fix for each type of error that JAX raises for code that it cannot trace."""

BY_MESSAGE: Mapping[str, str] = {
    "Shapes must be 1D sequences of concrete values": ADVICE["ConcretizationTypeError"],
    "was not hashable: ": "make the argument static (--static NAME=VALUE)",
}
"""The fix for errors of general types, by a part of the message."""

AS_NUMBER = (
    "give that dim as a number, or compute with the size by jax.numpy, jax.lax.fori_loop or"
    " jax.lax.scan, as in jnp.sqrt(x.shape[0])"
)
"""The fix where Python needs a size that is unknown until the model runs."""

_NUMBERS: Mapping[str, str] = {
    "associative scan": "call it by its whole name, jax.lax.associative_scan, which works at any"
    " size; or give that dim as a number",
    "for Pallas": "give the blocks sizes that are numbers, with a grid such as"
    " pl.cdiv(x.shape[0], 8), or map the kernel over that dim by jax.vmap; or give it as a number",
}
"""More specific fixes than ``AS_NUMBER``, by a part of the message."""

_NEEDS_NUMBER = re.compile(
    r"_DimExpr|[Ss]ymbolic (dimension|number|shape)|shape polymorphism|non-constant size"
)
"""How messages of Python, NumPy and JAX name a symbolic size."""


def explain(
    error: Exception,
    parameters: Sequence[str],
    mismatch: str,
    has_open_sizes: bool,
    right_call: str = "",
) -> SmeltError:
    """Return the error to raise for ``error``, which the traced function raised.

    - E112: JAX cannot compare a symbolic size, or Python needs it as a number.
    - E109: ``error`` is a TypeError and ``mismatch`` says why the signature rejects the call.
    - E113: everything else. ``right_call`` says how to call such a function, if that is known.

    Raises ``error`` itself if smelt's own replacement of library code raised it.
    """
    undecided = _undecided(error)
    if undecided is not None:
        return undecided
    if isinstance(error, TypeError) and mismatch:
        # A function may accept more than its signature says, so only a failed call is blamed.
        return UsageError(
            "E109",
            "the function cannot be called with these arguments",
            fix="give one spec for each argument; those after a static one by keyword,"
            " as kwargs={NAME: SPEC} or --input NAME=SPEC",
            why=str(mismatch),
        )
    if is_own(error):
        raise error
    if _NEEDS_NUMBER.search(str(error)):
        return Unsupported(
            "E112",
            "a symbolic size is used as a number",
            at=raised_at(error),
            why=_first_line(error),
            fix=next((fix for text, fix in _NUMBERS.items() if text in str(error)), AS_NUMBER),
        )
    return _user_exception(error, parameters, has_open_sizes, right_call)


def _undecided(error: Exception) -> Unsupported | None:
    """Return E112 if ``error`` says that an answer depends on the symbols, else None.

    The question is a comparison of sizes, or whether a division leaves a remainder.
    """
    if isinstance(error, compat.InconclusiveDim) and "inconclusive" in str(error):
        return Unsupported(
            "E112",
            _comparison_in(error),
            at=raised_at(error),
            why="the answer may differ between the sizes that the symbols stand for",
            fix=comparison_advice(str(error)),
        )
    if isinstance(error, compat.InconclusiveDim) and "divide evenly" in str(error):
        return Unsupported(
            "E112",
            "a division of a symbolic size may leave a remainder",
            at=raised_at(error),
            why=_first_line(error),
            fix="make the dim a multiple, as in 'f32[8*B,3]', or give it as a number",
        )
    return None


def _user_exception(
    error: Exception, parameters: Sequence[str], has_open_sizes: bool, right_call: str
) -> UsageError:
    """Return E113 for any other exception, with a fix where one is known."""
    kind = type(error).__name__
    link = _LINK.search(str(error))
    range_advice = float_range_advice(str(error)) if has_open_sizes else ""
    advice = [
        right_call,
        range_advice or ADVICE.get(kind, "") or _by_message(str(error)),
        extreme_advice(str(error)),
        mirroring_advice(str(error)),
        multiples_advice(str(error)),
        f"see {link.group().rstrip('.')}" if link else "",
    ]
    return UsageError(
        "E113",
        f"your function raised {kind}",
        at=raised_at(error),
        why=_message(error, parameters),
        fix="; ".join(part for part in advice if part),
    )


def _by_message(text: str) -> str:
    """Return the fix for a message with a known part, else an empty string."""
    return next((advice for part, advice in BY_MESSAGE.items() if part in text), "")


def _first_line(error: Exception) -> str:
    """Return the first line of the error's message."""
    return str(error).strip().partition("\n")[0]


def _comparison_in(error: Exception) -> str:
    """Return the line of the message with the size comparison, without JAX's prefix for slices."""
    lines = (line.removeprefix("Details: ") for line in str(error).strip().splitlines())
    return next(line for line in lines if "inconclusive" in line)


def check_returned(fn: Callable[..., Any], leaves: Sequence[Any]) -> None:
    """Raise UsageError E113 if ``fn`` returned no arrays, or a leaf that is not an array."""
    if not leaves:
        raise _returned(fn, "nothing that a model could return")
    for leaf in leaves:
        if is_reference(leaf):
            raise _returned(fn, "a mutable reference", "return the array that it holds: ref[...]")
        try:
            compat.aval_of(leaf)
        except TypeError:
            raise _returned(fn, f"a {type(leaf).__name__}: {_shortened_text(repr(leaf))}") from None


def _returned(fn: Callable[..., Any], what: str, fix: str = "return arrays only") -> UsageError:
    """Return E113 for a function that returned ``what``."""
    return UsageError(
        "E113",
        f"your function returned {what}",
        at=defined_at(fn),
        why="a model returns arrays, numbers, and tuples, lists and dicts of them",
        fix=fix,
    )


def _message(error: Exception, parameters: Sequence[str]) -> str:
    """Return the message of ``error`` without JAX's remarks about the smelt code that called it."""
    text = str(error)
    message = _LINK.sub("", text).partition("\nThe error occurred while tracing")[0]
    lines = [
        line.strip() for line in message.splitlines() if line.strip() not in ("", "See", "See .")
    ]
    if len(lines) > LINES:
        lines = [*lines[:LINES], "..."]
    depends = _DEPENDS.search(text)
    if depends is not None:
        names = _ARGUMENT.sub(lambda match: _parameter(match, parameters), depends.group(1))
        lines.append(f"it depends on the value of {names}")
    return "; ".join(lines) or "the exception has no message"


def _parameter(match: re.Match[str], parameters: Sequence[str]) -> str:
    """Return the user's name of the parameter that JAX calls ``argument_values[i]``."""
    index = int(match.group(1))
    return parameters[index] if index < len(parameters) else match.group()


def _shortened_text(text: str) -> str:
    """Return ``text``, cut to 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."
