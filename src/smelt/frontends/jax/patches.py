"""Replacements of functions of JAX and its libraries while smelt traces."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import jax

from smelt.frontends.jax import frames
from smelt.frontends.jax.registry import RULES
from smelt.frontends.jax.replacement import Function, Replacement, original
from smelt.registry import Owner, Registry


@dataclass(frozen=True)
class Patch:
    """Replace the function ``target`` (``module:attribute.path``) while smelt traces.

    - ``replacement`` makes the new function from the original one.
    - ``optional``: do not import the module if nobody has.
    - ``leaves_out``: the replacement drops something that a model cannot do; strict traces skip it.
    - ``parameters``: the parameters that the replacement expects; empty if it takes any.
    - ``owner``: who registers the patch; by default the module of ``replacement``.
    - ``after``: call the original first, and the replacement only if that raises this exception. If
      the replacement returns NotImplemented, the exception is raised.

    A patch saves time, or lets more be traced; it changes no result. So it is skipped, and logged
    once as INFO, if its function is missing, takes other parameters, or lacks something that the
    replacement needs.
    """

    target: str
    replacement: Callable[[Function], Function]
    optional: bool = False
    parameters: tuple[str, ...] = ()
    owner: str = ""
    leaves_out: bool = False
    after: type[Exception] | None = None


PATCHES: Registry[str, Patch] = Registry(
    "E652", lambda target: f"patches of {target!r}", RULES.fill
)
"""The registered patches, of our lowerings and of other packages."""
_left_out: set[str] = set()
_OWN = str(Path(__file__).parents[2])
"""The folder of smelt."""

_log = logging.getLogger(__name__)


def register(patch: Patch) -> None:
    """Register ``patch``; raises UsageError E652 if its target has a patch of another owner.

    The same owner replaces its own, as when a notebook cell runs again.
    """
    PATCHES.add(patch.target, patch, Owner(patch.owner or patch.replacement.__module__))


def replacements(*, strict: bool = False) -> list[Replacement]:
    """Return a Replacement for each registered patch whose function is as the patch expects."""
    chosen = (patch for patch in PATCHES.values() if not (strict and patch.leaves_out))
    found = map(_replacement, chosen)
    return [replacement for replacement in found if replacement is not None]


def _replacement(patch: Patch) -> Replacement | None:
    """Return the Replacement for ``patch``, None if the function does not fit or is not
    imported."""
    module, _, path = patch.target.partition(":")
    if patch.optional and module not in sys.modules:
        return None
    *parents, name = path.split(".")
    try:
        owner = functools.reduce(getattr, parents, import_module(module))
        return _replacement_of(patch, owner, name, original(owner, name))
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        _leave_out(patch, f"{type(error).__name__}: {error}")
        return None


@functools.lru_cache(maxsize=256)
def _replacement_of(patch: Patch, owner: Any, name: str, function: Function) -> Replacement | None:
    """Return the Replacement for ``function``, the attribute ``name`` of ``owner``.

    It is cached, so that all traces share it.
    """
    if not _is_of_library(function, patch.target.partition(":")[0]):
        return None
    if patch.parameters:
        found = tuple(inspect.signature(function).parameters)
        if found != patch.parameters:
            _leave_out(patch, f"it takes {', '.join(found)}")
            return None
    return Replacement(owner, name, _Guarded(patch), patch.after)


def _leave_out(patch: Patch, why: str) -> None:
    if patch.target not in _left_out:
        _left_out.add(patch.target)
        _log.info("traced as it is, which may take longer: %s (%s)", patch.target, why)


def _is_of_library(function: Function, module: str) -> bool:
    """False if someone else installed ``function``, whose behavior is then unknown.

    JAX's decorators, which equinox applies to methods, do not count as a change, nor do wrappers of
    the package ``decorator``. Functions without Python code, such as those of ``jax.jit``, and
    modules that are not packages are trusted.
    """
    code = getattr(function, "__code__", None)
    made_by = getattr(sys.modules.get("decorator"), "__file__", None)
    if code is not None and code.co_filename == made_by:
        wrapped = getattr(function, "__wrapped__", None)
        return wrapped is not None and _is_of_library(wrapped, module)
    folders = getattr(sys.modules[module.partition(".")[0]], "__path__", None)
    if code is None or folders is None:
        return True
    return any(code.co_filename.startswith(folder) for folder in (*folders, *jax.__path__))


@dataclass(frozen=True)
class _Guarded:
    """Makes the replacement of a patch; its calls fall back to the original if it fails."""

    patch: Patch

    def __call__(self, function: Function) -> Function:
        """Return the replacement of ``function`` with the fallback, or ``function`` itself."""
        patch = self.patch
        try:
            instead = patch.replacement(function)
        except (AttributeError, ImportError, TypeError, ValueError) as error:
            _leave_out(patch, f"{type(error).__name__}: {error}")
            return function

        def call(*args: Any, **keywords: Any) -> Any:
            try:
                return instead(*args, **keywords)
            except (AttributeError, ImportError) as error:
                if not _is_of_replacement(error):
                    raise
                _leave_out(patch, f"{type(error).__name__}: {error}")
            return function(*args, **keywords)

        return call


def _is_of_replacement(error: BaseException) -> bool:
    """True if the traceback holds no user code: the replacement misses something in a library."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return not any(frames.is_user_file(file) for file in files if not file.startswith(_OWN))
