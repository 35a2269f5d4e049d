"""Names of inputs, outputs and parameters, made from function parameters and pytree paths."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from smelt.errors import UsageError, listed

_RESERVED = re.compile(r"(val|const|loop)_\d+")

NewNames = Sequence[str] | Mapping[str, str]
"""A list of names in order, or a mapping from old to new names."""


def input_names(parameters: Sequence[str], specs: Sequence[Any]) -> list[str]:
    """Return a name for each leaf of ``specs``: its parameter, then its path (``batch_image``)."""
    leaves = jax.tree_util.tree_flatten_with_path(tuple(specs))[0]
    raw = [join(parameters[path[0].idx], path[1:]) or "x" for path, _ in leaves]
    return unique(raw, set())


def output_names(out: Any, used_names: Sequence[str]) -> list[str]:
    """Return a name for each leaf of the result: ``out``, ``out_0``, ``out_logits``."""
    leaves = jax.tree_util.tree_flatten_with_path(out)[0]
    return unique([join("out", path) for path, _ in leaves], set(used_names))


def join(stem: str, path: Sequence[Any]) -> str:
    """Return ``stem`` and the keys of ``path`` joined by underscores.

    The last key ``value`` of an nnx variable is left out.
    """
    shortest = 0 if stem else 1  # a name has at least one part
    if len(path) > shortest and _text(path[-1]) == "value" and hasattr(path[-1], "name"):
        path = path[:-1]
    parts = [stem, *map(_text, path)]
    return re.sub(r"\W+", "_", "_".join(parts)).strip("_")


def _text(key: Any) -> str:
    """Return one key of a path as text."""
    return jax.tree_util.keystr((key,), simple=True)


def unique(names: Sequence[str], used_names: set[str]) -> list[str]:
    """Return ``names``, with a number appended where a name is taken, empty or reserved.

    Adds the result to ``used_names``.
    """
    result = []
    for stem in names:
        name, count = stem, 1
        while name in used_names or _RESERVED.fullmatch(name):
            count += 1
            name = f"{stem}_{count}"
        used_names.add(name)
        result.append(name)
    return result


def renamed(names: Sequence[str], new_names: NewNames | None, kind: str) -> list[str]:
    """Return ``names`` changed by ``new_names``: a new name for each, or a mapping for some.

    Raises UsageError E108 for a wrong count, an unknown old name, and a new name that is empty,
    used twice or reserved for inner values.
    """
    if new_names is None:
        return list(names)
    if isinstance(new_names, str):
        fix = f'{kind}_names=["{new_names}"]'
        raise _wrong_names(kind, f"{new_names!r} is text, not a list of names", fix)
    if isinstance(new_names, Mapping):
        unknown_names = [old for old in new_names if old not in names]
        if unknown_names:
            raise _wrong_names(
                kind,
                f"there is no {kind} {unknown_names[0]!r}",
                f"the {kind}s are {listed(names, 20)}",
            )
        result = [new_names.get(name, name) for name in names]
    else:
        result = list(new_names)
        if len(result) != len(names):
            what = f"there are {len(result)} names for {len(names)} {kind}s"
            raise _wrong_names(kind, what, f"the {kind}s are {listed(names, 20)}")
    _check(result, kind)
    return result


def check_disjoint(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise UsageError E108 if an input and an output have the same name."""
    shared_names = sorted(set(inputs) & set(outputs))
    if shared_names:
        raise _wrong_names("output", f"{shared_names[0]!r} is also the name of an input", "")


def _check(names: Sequence[Any], kind: str) -> None:
    """Raise UsageError E108 for a name that is empty, reserved or used twice."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise _wrong_names(kind, f"{name!r} is not a name", "")
        if _RESERVED.fullmatch(name):
            raise _wrong_names(kind, f"names such as {name!r} are reserved for inner values", "")
        if name in seen:
            raise _wrong_names(kind, f"two {kind}s have the name {name!r}", "")
        seen.add(name)


def _wrong_names(kind: str, why: str, fix: str) -> UsageError:
    """Return UsageError E108 for the names of ``kind`` (input or output)."""
    fix = fix or "give each input and output a name of its own"
    return UsageError("E108", f"the {kind} names are wrong", why=why, fix=fix)


def positional_names(
    fn: Callable[..., Any], count: int, keywords: Mapping[str, Any], *, partly: bool = False
) -> tuple[list[str], str]:
    """Return the names of the first ``count`` parameters, and why the signature rejects the call.

    The second result is empty for a valid call. ``partly`` allows missing arguments.
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
