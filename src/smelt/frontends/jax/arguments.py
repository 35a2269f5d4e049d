"""The call that is traced: specs by position and by keyword, and static values by keyword.

Specs become inputs, in the order of positional arguments, then keywords. Static values are handed
to the function as they are. Python numbers given as specs are inputs of rank 0, ``None`` holds no
input; what is neither array, number nor spec belongs into ``static``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.errors import SmeltError, UsageError
from smelt.frontends.jax import compat, failures, modules


@dataclass(frozen=True)
class Arguments:
    """``parameters`` and ``specs`` of all inputs, in order; ``count`` of them by position.

    ``mismatch`` says why the signature of the function does not take them, if it does not.
    """

    parameters: tuple[str, ...]
    specs: tuple[Any, ...]
    count: int
    static: Mapping[str, Any]
    mismatch: str

    def call(self, fn: Callable[..., Any], values: Sequence[Any]) -> Any:
        """What ``fn`` gives for ``values`` in place of ``specs``.

        What it raises becomes UsageError E109 if the signature explains it, Unsupported E112 where
        the function depends on how symbolic sizes compare, and UsageError E113 otherwise.
        """
        keywords = dict(zip(self.parameters[self.count :], values[self.count :], strict=True))
        try:
            return fn(*values[: self.count], **keywords, **self.static)
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            how = modules.right_call(fn)
            is_open = _has_open_sizes(values)
            raise failures.explain(error, self.parameters, self.mismatch, is_open, how) from error


def _has_open_sizes(values: Sequence[Any]) -> bool:
    dims = (dim for leaf in compat.leaves(values) for dim in getattr(leaf, "shape", ()))
    return any(map(compat.is_symbolic, dims))


def bind(
    fn: Callable[..., Any],
    positional: Sequence[Any],
    keyword: Mapping[str, Any],
    static: Mapping[str, Any],
) -> Arguments:
    """The call of ``fn`` with these specs; raises UsageError E109 for a name given twice, and for
    what is no function that can be traced."""
    modules.check_traceable(fn)
    twice = sorted(keyword.keys() & static.keys())
    if twice:
        raise UsageError("E109", f"{twice[0]!r} is given as an input and as a static value")
    for name in (*keyword, *static):
        if not isinstance(name, str):
            raise UsageError("E109", f"{name!r} is no name of a parameter")
    count = len(positional)
    names, mismatch = positional_names(fn, count, {**keyword, **static})
    specs = (*positional, *keyword.values())
    return Arguments((*names, *keyword), specs, count, dict(static), mismatch)


def positional_names(
    fn: Callable[..., Any], count: int, keywords: Mapping[str, Any], *, partly: bool = False
) -> tuple[list[str], str]:
    """The names of the first ``count`` parameters, and what is wrong with such a call.

    ``partly`` allows arguments to be missing.
    """
    unnamed = [f"x{i}" for i in range(count)]
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return unnamed, ""
    try:
        bind_to = signature.bind_partial if partly else signature.bind
        bound = bind_to(*range(count), **keywords)
    except TypeError as error:
        return unnamed, str(error)
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(value))]
        elif kind is not inspect.Parameter.VAR_KEYWORD:
            names.append(name)
    return names[:count], ""
