"""The option ``functions`` of a trace: classes, and patterns of class names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from smelt.errors import UsageError
from smelt.frontends.jax.functions.declare import check_class, declared
from smelt.frontends.jax.functions.marks import DOMAIN
from smelt.frontends.jax.functions.methods import marking
from smelt.frontends.jax.functions.objects import bases, is_wrapper
from smelt.frontends.jax.patching.replacement import Replacement

Functions: TypeAlias = Sequence[type | str] | str
"""Classes and patterns of class names, or ``"repeated"``: blocks with two or more equal calls."""

REPEATED = "repeated"


def replacements_for(functions: Functions) -> list[Replacement]:
    """Return the replacements that mark calls of decorated and of chosen classes.

    Decorated classes have ``@smelt.function``; ``functions`` names further ones. ``"repeated"``
    marks every class of modules; calls stay functions only where they repeat.
    Raises UsageError E111 for a class that cannot be chosen, and for a pattern without a match.
    """
    domains = declared()
    repeated: frozenset[type] = frozenset()
    if functions == REPEATED:
        modules = (cls for cls in _modules() if not is_wrapper(cls))
        repeated = frozenset(modules).difference(domains)
        classes = list(repeated)
    else:
        items = [functions] if isinstance(functions, str) else functions
        classes = [cls for item in items for cls in _classes(item)]
    for cls in classes:
        domains.setdefault(cls, DOMAIN)
    ordered = sorted(domains.items(), key=lambda pair: (pair[0].__module__, pair[0].__qualname__))
    return [marking(cls, domain, kept=cls not in repeated) for cls, domain in ordered]


def _classes(item: Any) -> list[type]:
    """Return the classes that ``item``, a class or a pattern, chooses."""
    if isinstance(item, type):
        check_class(item)
        return [item]
    if not isinstance(item, str):
        raise UsageError(
            "E111",
            f"functions= contains {item!r}, which is neither a class nor a pattern",
            why="functions= takes classes, patterns of class names, and 'repeated'",
            fix="functions=[MyModule], or functions='repeated'",
        )
    matches = [cls for cls in _modules() if _matches(cls, item)]
    if not matches:
        raise UsageError(
            "E111",
            f"no class of an nnx or equinox module matches {item!r}",
            why="a pattern is compared with the names of all module classes imported so far",
            fix="give the class itself, or decorate it with smelt.function",
        )
    return matches


def _matches(cls: type, pattern: str) -> bool:
    """True if the name, the qualified name or the full name of ``cls`` matches ``pattern``."""
    names = (cls.__name__, cls.__qualname__, f"{cls.__module__}.{cls.__qualname__}")
    return any(fnmatchcase(name, pattern) for name in names)


def _modules() -> list[type]:
    """Return all loaded classes of callable modules, each once."""
    pending = list(bases())
    classes: dict[type, None] = {}
    while pending:
        subclasses: list[type] = type.__subclasses__(pending.pop())
        pending += [cls for cls in subclasses if cls not in classes]
        classes.update(dict.fromkeys(subclasses))
    return [cls for cls in classes if any("__call__" in vars(base) for base in cls.__mro__)]
