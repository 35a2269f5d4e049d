"""Replace functions of JAX and its libraries while smelt traces."""

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
from smelt.frontends.jax.patching.replacement import Function, Replacement, original
from smelt.frontends.jax.registry import RULES
from smelt.registry import Owner, Registry


@dataclass(frozen=True)
class Patch:
    """Replace the function ``target`` (``module:attribute.path``) while smelt traces.

    - ``replacement`` returns the new function for the original one.
    - ``optional``: do not import the module for the patch alone.
    - ``leaves_out``: the replacement drops an effect that a model cannot have, such as a print;
      strict traces skip it.
    - ``parameters``: the parameters that the replacement expects; empty if it accepts any.
    - ``owner``: the name of the registering package; by default the module of ``replacement``.
    - ``after``: call the original first, and the replacement only if that raises this exception. If
      the replacement returns NotImplemented, the exception is raised.

    A patch saves time, or makes more code traceable; it changes no result. So smelt skips a patch,
    and logs it once as INFO, if its function is missing, has other parameters, or lacks an
    attribute that the replacement needs.
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
_skipped: set[str] = set()
"""Targets of the patches that were skipped; each is logged once."""
_OWN = str(Path(__file__).parents[3])
"""The folder of smelt."""

_log = logging.getLogger(__name__)


def register(patch: Patch) -> None:
    """Register ``patch``; raises UsageError E652 if another owner registered a patch of its target.

    An owner may register a patch again, as when a notebook cell runs twice.
    """
    PATCHES.add(patch.target, patch, Owner(patch.owner or patch.replacement.__module__))


def replacements(*, strict: bool = False) -> list[Replacement]:
    """Return a Replacement for each registered patch whose function has the expected form."""
    allowed = (patch for patch in PATCHES.values() if not (strict and patch.leaves_out))
    candidates = map(_replacement, allowed)
    return [replacement for replacement in candidates if replacement is not None]


def _replacement(patch: Patch) -> Replacement | None:
    """Return the Replacement for ``patch``.

    None if the function does not have the expected form, or its module is not imported.
    """
    module, _, path = patch.target.partition(":")
    if patch.optional and module not in sys.modules:
        return None
    *parents, name = path.split(".")
    try:
        owner = functools.reduce(getattr, parents, import_module(module))
        return _replacement_of(patch, owner, name, original(owner, name))
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        _log_skipped(patch, f"{type(error).__name__}: {error}")
        return None


@functools.lru_cache(maxsize=256)
def _replacement_of(patch: Patch, owner: Any, name: str, function: Function) -> Replacement | None:
    """Return the Replacement for ``function``, the attribute ``name`` of ``owner``.

    None if other code has replaced the library's function, or if the function takes other
    parameters than ``patch`` expects, as in another release. The result is cached, so that all
    traces share it.
    """
    if not _is_of_library(function, patch.target.partition(":")[0]):
        return None
    if patch.parameters:
        parameters = tuple(inspect.signature(function).parameters)
        if parameters != patch.parameters:
            _log_skipped(patch, f"it takes {', '.join(parameters)}")
            return None
    return Replacement(owner, name, _Guarded(patch), patch.after)


def _log_skipped(patch: Patch, why: str) -> None:
    """Log once that ``patch`` is skipped, and why."""
    if patch.target not in _skipped:
        _skipped.add(patch.target)
        _log.info("traced without its patch, which may take longer: %s (%s)", patch.target, why)


def _is_of_library(function: Function, module: str) -> bool:
    """True if ``function`` is the library's own; other code may have replaced it.

    The behavior of a replacement is unknown. These count as the library's, too: methods behind
    JAX's decorators (equinox applies them), wrappers of the package ``decorator``, functions
    without Python code (``jax.jit``), and functions of modules that are not packages.
    """
    code = getattr(function, "__code__", None)
    decorator_file = getattr(sys.modules.get("decorator"), "__file__", None)
    if code is not None and code.co_filename == decorator_file:
        wrapped = getattr(function, "__wrapped__", None)
        return wrapped is not None and _is_of_library(wrapped, module)
    folders = getattr(sys.modules[module.partition(".")[0]], "__path__", None)
    if code is None or folders is None:
        return True
    return any(code.co_filename.startswith(folder) for folder in (*folders, *jax.__path__))


@dataclass(frozen=True)
class _Guarded:
    """Builds the replacement of a patch; a call that fails in it falls back to the original."""

    patch: Patch

    def __call__(self, function: Function) -> Function:
        """Return the replacement of ``function`` with the fallback, or ``function`` itself."""
        patch = self.patch
        try:
            replacement = patch.replacement(function)
        except (AttributeError, ImportError, TypeError, ValueError) as error:
            _log_skipped(patch, f"{type(error).__name__}: {error}")
            return function

        def call(*args: Any, **keywords: Any) -> Any:
            """Call the replacement; if it needs an attribute that a library lacks, the original."""
            try:
                return replacement(*args, **keywords)
            except (AttributeError, ImportError) as error:
                if not _is_in_replacement(error):
                    raise
                _log_skipped(patch, f"{type(error).__name__}: {error}")
            return function(*args, **keywords)

        return call


def _is_in_replacement(error: BaseException) -> bool:
    """True if the traceback holds no user code, so the replacement itself failed in a library."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return not any(frames.is_user_file(file) for file in files if not file.startswith(_OWN))
