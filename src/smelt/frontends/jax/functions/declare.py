"""``@smelt.function``: keep calls of a function, or of instances of a class, as calls.

A decorated class is only recorded. A decorated function is wrapped; outside of traces the wrapper
only calls it.
"""

from __future__ import annotations

import functools
import re
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

from smelt.errors import UsageError
from smelt.frontends.jax import frames
from smelt.frontends.jax.functions import calls
from smelt.frontends.jax.functions.marks import DOMAIN, Mark
from smelt.frontends.jax.patching.replacement import is_tracing

frames.hide_frames(__file__)

Target = TypeVar("Target", bound=Callable[..., Any])

_declared: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()

_NAMESPACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_RESERVED = re.compile(r"ai\.onnx(\..*)?|com\.microsoft(\..*)?|smelt(\.c)?")


def declared() -> dict[type, str]:
    """Return the decorated classes, each with the domain of its functions."""
    return dict(_declared)


@overload
def function(target: Target, /, *, namespace: str = ...) -> Target: ...


@overload
def function(*, namespace: str = ...) -> Callable[[Target], Target]: ...


def function(target: Any = None, /, *, namespace: str = DOMAIN) -> Any:
    """Keep calls of ``target`` as calls of an ONNX function in every model that smelt traces.

    ``target`` is a Python function, a method in the body of its class, or a class with a
    ``__call__`` such as an nnx or equinox module. Calls with equal bodies share one function;
    arrays that they capture, such as weights, become its inputs. The function has the name of
    ``target``; further functions of that name get ``_2`` and so on. ``namespace`` is its domain.
    Outside of traces nothing changes.

    Raises UsageError E111 if any other object is decorated, or if ``namespace`` is reserved.
    """
    check_namespace(namespace)
    if target is None:
        return functools.partial(_declare, namespace=namespace)
    return _declare(target, namespace=namespace)


def check_namespace(namespace: str) -> None:
    """Raise UsageError E111 if user functions may not be in the domain ``namespace``."""
    if _NAMESPACE.fullmatch(namespace) and not _RESERVED.fullmatch(namespace):
        return
    raise UsageError(
        "E111",
        f"{namespace!r} cannot be a namespace for functions",
        why="it is the domain of operators"
        if _RESERVED.fullmatch(namespace)
        else "it is not a sequence of names with dots between them",
        fix="write names with dots between them, such as 'my.model'",
    )


def _declare(target: Any, *, namespace: str) -> Any:
    """Record a class, or wrap a function; raises UsageError E111 for any other object."""
    if isinstance(target, type):
        check_class(target)
        _declared[target] = namespace
        return target
    if not isinstance(target, types.FunctionType):
        raise UsageError(
            "E111",
            f"a {type(target).__name__} cannot be decorated with smelt.function",
            why="only Python functions and classes can be decorated",
            fix="decorate the Python function first, then apply the other decorator",
        )
    return _wrapped(target, namespace)


def check_class(cls: type) -> None:
    """Raise UsageError E111 for a class whose calls cannot become functions."""
    module = "flax.linen"
    if any(base.__module__.startswith(module) for base in cls.__mro__):
        why = "a module of flax.linen does not hold its parameters"
    elif not any("__call__" in vars(base) for base in cls.__mro__):
        why = "it has no __call__"
    else:
        return
    fix = "decorate a function that calls it"
    raise UsageError("E111", f"calls of {cls.__name__} cannot become functions", why=why, fix=fix)


def _wrapped(fn: types.FunctionType, namespace: str) -> Callable[..., Any]:
    """Return a wrapper of ``fn`` that marks its calls while a trace runs."""
    mark = Mark(namespace, _name(fn), f"{fn.__module__}:{fn.__qualname__}")

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        """Call ``fn``, as a marked call during a trace."""
        if not is_tracing():
            return fn(*args, **kwargs)
        return calls.call_marked(mark, fn, args, kwargs)

    return call


def _name(fn: types.FunctionType) -> str:
    """Return the name of ``fn``; a ``__call__`` has the name of its class."""
    parts = fn.__qualname__.split(".")
    return parts[-2] if parts[-1] == "__call__" and len(parts) > 1 else fn.__name__
