"""The arrays that a function carries along: of a module, in a closure, bound or global.

``State`` finds them with names and makes the same function with others in their place. It looks
into nnx modules, pytrees such as equinox modules, methods of both, partials, the variables that a
function closes over and the global ones that it reads, and functions among these.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from smelt.frontends.jax import compat
from smelt.frontends.jax.arguments import positional_names
from smelt.frontends.jax.names import join, unique


class Part(NamedTuple):
    """A variable: its name, empty for the function itself, what it holds, and whether its name
    stands for itself, as that of a global variable does in every function."""

    name: str
    content: Any
    is_global: bool = False


Rebuild: TypeAlias = Callable[[Sequence[Any]], Any]
"""Makes a function from its parts, in order."""

Again: TypeAlias = Callable[[Mapping[int, Any]], Any]
"""Makes something with other arrays, given by the ids of the old ones."""


Copy: TypeAlias = tuple[Any, Mapping[tuple[Any, ...], Any]]
"""An nnx module, and what its variables hold, by path."""


@dataclass(frozen=True)
class State:
    """``arrays`` by name, each array once; ``rebuild`` makes the function with others by id.

    ``keys`` are those of the streams of random numbers that nnx modules count along. ``copies``
    lists the nnx modules that ``rebuild`` has made, with what their variables held at first; it
    is None if the function has no such modules.
    """

    arrays: Mapping[str, Any]
    rebuild: Again
    keys: Sequence[Any]
    copies: list[Copy] | None


def state_of(fn: Callable[..., Any]) -> State:
    """The arrays of ``fn``; keys of random numbers are left out."""
    wrapped = inspect.unwrap(fn)
    search = _Search(getattr(wrapped, "__globals__", None))
    search.function("", wrapped)  # Names come from what jax.vmap and the like wrap.
    rebuild = search.function("", fn) or (lambda others: fn)
    names = unique([name for name, _ in search.found], set())
    arrays = [array for _, array in search.found]
    return State(dict(zip(names, arrays, strict=True)), rebuild, search.keys, search.copies)


class _Search:
    """One walk over a function; what holds no array is None and stays as it is."""

    def __init__(self, namespace: dict[str, Any] | None) -> None:
        self.namespace = namespace
        self.found: list[tuple[str, Any]] = []
        self.keys: list[Any] = []
        self.copies: list[Copy] | None = None
        self._arrays: set[int] = set()
        self._functions: dict[int, tuple[Any, Again | None]] = {}

    def function(self, name: str, fn: Any) -> Again | None:
        """Record the arrays of ``fn``, each function once; recursive ones end at themselves."""
        if id(fn) not in self._functions:
            self._functions[id(fn)] = fn, None
            parts, make = _parts(fn, self.namespace)
            agains = [self._content(_joined(name, part), part.content) for part in parts]
            contents = [part.content for part in parts]
            self._functions[id(fn)] = fn, _assembled(contents, agains, make)
        return self._functions[id(fn)][1]

    def _content(self, name: str, content: Any) -> Again | None:
        leaves, make, modules = self._flatten(content)
        agains = [self._leaf(join(name, path), leaf) for path, leaf in leaves]
        return _assembled([leaf for _, leaf in leaves], agains, make, always=modules)

    def _flatten(self, content: Any) -> tuple[list[tuple[Any, Any]], Rebuild, bool]:
        """The leaves of ``content`` with paths, what puts others there, and if nnx modules are."""
        nnx = sys.modules.get("flax.nnx")
        try:
            if nnx is not None and _holds_modules(content, nnx):
                return (*self._flatten_modules(content, nnx), True)
            leaves, tree = jax.tree_util.tree_flatten_with_path(content)
        except (TypeError, ValueError):
            # Such as a dict with keys that have no order: a value, but no tree.
            return [], lambda new: content, False
        return leaves, lambda new: jax.tree.unflatten(tree, new), False

    def _flatten_modules(self, content: Any, nnx: Any) -> tuple[list[tuple[Any, Any]], Rebuild]:
        """As a pytree, a module that occurs twice would become two."""
        definition, state = nnx.split(content)
        leaves, tree = jax.tree_util.tree_flatten_with_path(state)
        self.keys += jax.tree.leaves(nnx.filter_state(state, nnx.RngKey))
        copies = self.copies = self.copies if self.copies is not None else []

        def make(new: Sequence[Any]) -> Any:
            fresh = jax.tree.unflatten(tree, new)
            before = {path: held(item) for path, item in nnx.to_flat_state(fresh)}
            copies.append((merged := nnx.merge(definition, fresh), before))
            return merged

        return leaves, make

    def _leaf(self, name: str, leaf: Any) -> Again | None:
        if _is_array(leaf):
            if id(leaf) not in self._arrays:
                self._arrays.add(id(leaf))
                self.found.append((name or "x", leaf))
            return lambda others: others.get(id(leaf), leaf)
        if isinstance(leaf, types.FunctionType | types.MethodType | functools.partial):
            return self.function(name, leaf)
        return None


def _assembled(
    pieces: Sequence[Any], agains: Sequence[Again | None], make: Rebuild, always: bool = False
) -> Again | None:
    """What makes the whole again, None if no piece can change and it need not be ``always``."""
    if not always and all(again is None for again in agains):
        return None

    def rebuild(others: Mapping[int, Any]) -> Any:
        pairs = zip(pieces, agains, strict=True)
        return make([piece if again is None else again(others) for piece, again in pairs])

    return rebuild


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and not compat.is_extended(leaf.dtype)


def _joined(name: str, part: Part) -> str:
    return part.name if part.is_global or not name else f"{name}_{part.name}".strip("_")


def _parts(fn: Any, namespace: dict[str, Any] | None) -> tuple[list[Part], Rebuild]:
    """What ``fn`` is made of, and what makes it of other parts."""
    match fn:
        case types.MethodType():
            return [Part("", fn.__self__)], lambda parts: types.MethodType(fn.__func__, parts[0])
        case functools.partial():
            return _parts_of_partial(fn)
        case types.FunctionType():
            return _parts_of_function(fn, namespace)
    return [Part("", fn)], lambda parts: parts[0]


def _parts_of_partial(fn: functools.partial[Any]) -> tuple[list[Part], Rebuild]:
    count, keys = len(fn.args), list(fn.keywords)
    names, _ = positional_names(fn.func, count, fn.keywords, partly=True)
    held = (*zip(names, fn.args, strict=True), *fn.keywords.items())
    parts = [Part("", fn.func), *(Part(name, content) for name, content in held)]

    def make(new: Sequence[Any]) -> Any:
        keywords = dict(zip(keys, new[1 + count :], strict=True))
        return functools.partial(new[0], *new[1 : 1 + count], **keywords)

    return parts, make


def _parts_of_function(
    fn: types.FunctionType, namespace: dict[str, Any] | None
) -> tuple[list[Part], Rebuild]:
    """Variables of the closure, and global ones if ``fn`` is of the module with ``namespace``."""
    cells = list(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    filled = [(name, cell) for name, cell in cells if _is_filled(cell)]
    own = fn.__globals__ if fn.__globals__ is namespace else {}
    read = [name for name in _names(fn.__code__) if name in own]
    parts = [Part(name, cell.cell_contents) for name, cell in filled]
    parts += [Part(name, own[name], is_global=True) for name in read]

    def make(new: Sequence[Any]) -> Any:
        held = dict(zip([name for name, _ in filled], new, strict=False))
        closure = tuple(types.CellType(held[n]) if n in held else cell for n, cell in cells)
        changed = dict(zip(read, new[len(filled) :], strict=True))
        scope = {**fn.__globals__, **changed} if changed else fn.__globals__
        made = types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, closure)
        made.__kwdefaults__ = fn.__kwdefaults__
        return functools.update_wrapper(made, fn)

    return parts, make


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _names(code: types.CodeType) -> list[str]:
    """The global names that ``code`` and the functions inside it read."""
    loads = (i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")
    names = dict.fromkeys(loads)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return list(names)


def flat(module: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The variables of an nnx module, with their paths."""
    nnx = sys.modules["flax.nnx"]
    yield from nnx.to_flat_state(nnx.state(module))


def held(variable: Any) -> Any:
    """What a variable holds."""
    return next(iter(jax.tree.leaves(variable)), None)


def _holds_modules(content: Any, nnx: Any) -> bool:
    kinds = (nnx.Module, nnx.Variable)
    leaves = jax.tree.leaves(content, is_leaf=lambda item: isinstance(item, kinds))
    return any(isinstance(leaf, kinds) for leaf in leaves)
