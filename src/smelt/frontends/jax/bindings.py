"""Binding specs: let a function bind a primitive of its own while smelt traces.

Lowerings of plain jaxprs need none of this. A plugin may use it for a function whose jaxpr loses
too much::

    binds(Binding("mylib.layers:norm", "mylib.norm", abstract=norm_aval))

While a trace runs, ``mylib.layers.norm(*arrays, **params)`` becomes one equation of the
primitive ``mylib.norm``. Other threads see the original; after the trace everyone does.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax

from smelt.errors import UsageError
from smelt.frontends.jax import compat


@dataclass(frozen=True)
class Binding:
    """``target`` is ``module:attribute.path``; ``primitive`` the name to bind.

    ``abstract(*avals, **params)`` gives the type of the one result. Positional arguments are
    operands, keyword arguments are parameters of the primitive and must be hashable. Derivatives
    and batching fall back on the original function.
    """

    target: str
    primitive: str
    abstract: Callable[..., Any]


_bindings: dict[str, Binding] = {}
_lock = threading.RLock()
_tracing: ContextVar[bool] = ContextVar("smelt.jax.tracing", default=False)
_users = 0
_originals: list[tuple[Any, str, Any, bool]] = []


def binds(binding: Binding) -> Binding:
    """Register ``binding``; raises UsageError E652 if its target has another."""
    with _lock:
        known = _bindings.setdefault(binding.target, binding)
    if known is not binding:
        raise UsageError(
            "E652",
            f"{binding.target!r} is bound to two primitives",
            at=(known.primitive, binding.primitive),
            fix="remove one of the bindings, or uninstall its package",
        )
    return binding


@contextmanager
def active() -> Iterator[None]:
    """Let bound functions bind their primitives, in this thread, within the ``with`` block."""
    _install()
    token = _tracing.set(True)
    try:
        yield
    finally:
        _tracing.reset(token)
        _restore()


def _install() -> None:
    """Put dispatchers in place of the bound functions; only the first of nested users does."""
    global _users  # noqa: PLW0603 - attributes of modules are global whatever we do
    with _lock:
        _users += 1
        if _users > 1:
            return
        try:
            for binding in _bindings.values():
                owner, name = _owner(binding.target)
                original = getattr(owner, name)
                _originals.append((owner, name, original, name in vars(owner)))
                setattr(owner, name, _dispatcher(binding, original))
        except BaseException:
            _restore()
            raise


def _restore() -> None:
    global _users  # noqa: PLW0603
    with _lock:
        _users -= 1
        if _users:
            return
        while _originals:
            owner, name, original, own = _originals.pop()
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)


def _owner(target: str) -> tuple[Any, str]:
    module, _, path = target.partition(":")
    *parents, name = path.split(".")
    return functools.reduce(getattr, parents, import_module(module)), name


def _dispatcher(binding: Binding, original: Callable[..., Any]) -> Callable[..., Any]:
    primitive = _primitive(binding, original)

    @functools.wraps(original)
    def dispatch(*args: Any, **params: Any) -> Any:
        if not _tracing.get():
            return original(*args, **params)
        return primitive.bind(*args, **params)

    return dispatch


def _primitive(binding: Binding, original: Callable[..., Any]) -> compat.Primitive:
    primitive = compat.Primitive(binding.primitive)
    primitive.def_abstract_eval(binding.abstract)
    primitive.def_impl(original)

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        return jax.vmap(functools.partial(original, **params), in_axes=tuple(dims))(*args), 0

    def derive(primals: Any, tangents: Any, **params: Any) -> Any:
        directions = tuple(compat.materialized(tangent) for tangent in tangents)
        return jax.jvp(functools.partial(original, **params), tuple(primals), directions)

    compat.set_rules(primitive, original, batch, derive)
    return primitive
