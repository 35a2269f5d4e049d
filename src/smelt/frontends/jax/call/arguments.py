"""The arguments of the traced call: specs by position and by keyword, and static values.

Each spec becomes one or more inputs of the model: first the positional arguments, then the
keywords. The function gets static values unchanged. A Python number as a spec becomes an input of
rank 0, and ``None`` adds no input. Every value that is neither an array, a number nor a spec
belongs into ``static``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.errors import SmeltError, UsageError
from smelt.frontends.jax import compat, failures
from smelt.frontends.jax.call import nnx_modules
from smelt.frontends.jax.call.names import positional_names


@dataclass(frozen=True)
class Arguments:
    """The specs of one call: the first ``count`` of ``specs`` are positional, the others keywords.

    ``parameters`` names each spec. ``mismatch`` says why the function's signature rejects the call;
    it is empty if the signature accepts it.
    """

    parameters: tuple[str, ...]
    specs: tuple[Any, ...]
    count: int
    static: Mapping[str, Any]
    mismatch: str

    def call(self, fn: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Return the result of ``fn`` for ``values`` in place of ``specs``.

        An exception of ``fn`` becomes UsageError E109 if ``mismatch`` explains it, Unsupported E112
        if ``fn`` depends on how symbolic sizes compare, and UsageError E113 otherwise.
        """
        keywords = dict(zip(self.parameters[self.count :], values[self.count :], strict=True))
        try:
            return fn(*values[: self.count], **keywords, **self.static)
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            advice = nnx_modules.call_advice(fn)
            is_open = _has_open_sizes(values)
            raise failures.explain(
                error, self.parameters, self.mismatch, is_open, advice
            ) from error


def _has_open_sizes(values: Sequence[Any]) -> bool:
    """True if an array among ``values`` has a symbolic dim."""
    dims = (dim for leaf in compat.leaves(values) for dim in getattr(leaf, "shape", ()))
    return any(map(compat.is_symbolic, dims))


def bind(
    fn: Callable[..., Any],
    positional: Sequence[Any],
    keyword: Mapping[str, Any],
    static: Mapping[str, Any],
) -> Arguments:
    """Return the ``Arguments`` of a call of ``fn`` with these specs.

    Raises UsageError E109 if a name is given both as an input and as a static value, or if ``fn``
    cannot be traced.
    """
    nnx_modules.check_traceable(fn)
    repeated = sorted(keyword.keys() & static.keys())
    if repeated:
        raise UsageError(
            "E109",
            f"{repeated[0]!r} is both an input and a static value",
            why="an argument is either an input of the model or a constant",
            fix="leave one of them out",
        )
    for name in (*keyword, *static):
        if not isinstance(name, str):
            raise UsageError(
                "E109",
                f"{name!r} is not a name of a parameter",
                why="a keyword argument needs the name of a parameter",
                fix="use the name in the signature of the function",
            )
    count = len(positional)
    names, mismatch = positional_names(fn, count, {**keyword, **static})
    specs = (*positional, *keyword.values())
    return Arguments((*names, *keyword), specs, count, dict(static), mismatch)
