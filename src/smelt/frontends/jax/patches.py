"""What stands in place of functions of JAX and its libraries while smelt traces.

Other threads call the originals all along, and after the trace everyone does. What JAX remembers
of functions that it traced meanwhile, it remembers for traces of smelt alone.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import jax

from smelt.frontends.jax import compat

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Patch:
    """``target`` is ``module:attribute.path``; ``replacement`` makes what is called instead of
    the function there, out of that function. If ``optional``, a module that nobody has imported
    stays so. ``parameters`` are those that the replacement knows; empty if it takes any.

    A patch saves time, or lets more be traced, and changes no result. So it is left out where its
    function is gone, takes other parameters, or lacks something that the replacement looks for;
    logged once, as INFO.
    """

    target: str
    replacement: Callable[[Function], Function]
    optional: bool = False
    parameters: tuple[str, ...] = ()


_patches: dict[str, Patch] = {}
_lock = threading.RLock()
_tracing: ContextVar[bool] = ContextVar("smelt.jax.tracing", default=False)
_remembered_for = compat.user_context(0)
_users = 0
_originals: list[tuple[Any, str, Any, bool]] = []
_left_out: set[str] = set()
_OWN = str(Path(__file__).parents[2])
"""The folder of smelt."""

_log = logging.getLogger(__name__)


def register(patch: Patch) -> Patch:
    """Register ``patch``, unless its target has another: returns the one that it has."""
    with _lock:
        return _patches.setdefault(patch.target, patch)


@contextmanager
def active() -> Iterator[None]:
    """Let replacements be called, in this thread, within the ``with`` block."""
    _install()
    token = _tracing.set(True)
    try:
        with _remembered_for(len(_patches)):
            yield
    finally:
        _tracing.reset(token)
        _restore()


def _install() -> None:
    """Put dispatchers in place of the functions; only the first of nested users does."""
    global _users  # noqa: PLW0603 - attributes of modules are global whatever we do
    with _lock:
        _users += 1
        if _users > 1:
            return
        try:
            for patch in _patches.values():
                if patch.optional and patch.target.partition(":")[0] not in sys.modules:
                    continue
                _put(patch)
        except BaseException:
            _restore()
            raise


def _put(patch: Patch) -> None:
    """Put a dispatcher in place of the function, if it is the one that ``patch`` knows."""
    try:
        owner, name = _owner(patch.target)
        original = getattr(owner, name)
        if not _is_of_library(original, patch.target):
            return
        if patch.parameters and (found := _parameters(original)) != patch.parameters:
            _leave_out(patch, f"it takes {', '.join(found)}")
            return
        dispatcher = _dispatcher(patch, original)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        _leave_out(patch, f"{type(error).__name__}: {error}")
        return
    own = name in vars(owner)
    _originals.append((owner, name, vars(owner).get(name), own))
    setattr(owner, name, dispatcher)


def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _leave_out(patch: Patch, why: str) -> None:
    if patch.target not in _left_out:
        _left_out.add(patch.target)
        _log.info("traced as it is, which may take longer: %s (%s)", patch.target, why)


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


def _is_of_library(function: Function, target: str) -> bool:
    """False if somebody else has put ``function`` there: what it does is not known.

    Decorators of JAX, which equinox puts around its methods, are no change. Functions without code
    of their own, as those of ``jax.jit``, and modules that are no packages are trusted.
    """
    code = getattr(function, "__code__", None)
    package = target.partition(":")[0].partition(".")[0]
    folders = getattr(sys.modules[package], "__path__", None)
    if code is None or folders is None:
        return True
    return any(code.co_filename.startswith(folder) for folder in (*folders, *jax.__path__))


def _dispatcher(patch: Patch, original: Function) -> Function:
    replacement = patch.replacement(original)

    @functools.wraps(original)
    def dispatch(*args: Any, **keywords: Any) -> Any:
        if not _tracing.get():
            return original(*args, **keywords)
        try:
            return replacement(*args, **keywords)
        except (AttributeError, ImportError) as error:
            if not _is_of_replacement(error):
                raise
            _leave_out(patch, f"{type(error).__name__}: {error}")
        return original(*args, **keywords)

    return dispatch


def _is_of_replacement(error: BaseException) -> bool:
    """True if no code of the user was running: the replacement misses something in a library."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return not any(compat.is_user_file(file) for file in files if not file.startswith(_OWN))
