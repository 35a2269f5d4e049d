"""The arrays that a function holds: in a module, a closure, bound arguments or global variables.

``state_of`` finds and names them, and ``State.rebuild`` returns the function with other arrays. It
searches nnx modules, pytrees such as equinox modules, methods of both, partials, closure variables,
global variables that the function reads, and functions among these.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from smelt.frontends.jax import compat
from smelt.frontends.jax.call.names import join, positional_names, unique


class Member(NamedTuple):
    """One object that a function holds.

    ``name`` is empty for the function itself. ``is_global`` marks a global variable, whose name
    does not depend on the function.
    """

    name: str
    content: Any
    is_global: bool = False


Assemble: TypeAlias = Callable[[Sequence[Any]], Any]
"""Builds a function from its members, in order."""

Copy: TypeAlias = tuple[Any, Mapping[tuple[Any, ...], Any]]
"""An nnx module, and the contents of its variables by path."""


@dataclass(frozen=True)
class Substitution:
    """New arrays by the ids of old ones; ``copies`` collects the nnx modules that are copied."""

    arrays: Mapping[int, Any]
    copies: list[Copy] = field(default_factory=list)

    def of(self, array: Any) -> Any:
        """Return the replacement of ``array``, or ``array`` itself."""
        return self.arrays.get(id(array), array)


Rebuild: TypeAlias = Callable[[Substitution], Any]
"""Returns an object rebuilt with other arrays."""


@dataclass(frozen=True)
class State:
    """The arrays that a function holds, by name, each array once.

    ``rebuild`` returns the function with other arrays. ``keys`` are the keys of random streams in
    nnx modules. ``has_modules`` is True if ``rebuild`` copies nnx modules even if no array is
    replaced.
    """

    arrays: Mapping[str, Any]
    rebuild: Rebuild
    keys: Sequence[Any]
    has_modules: bool


def state_of(fn: Callable[..., Any]) -> State:
    """Return the arrays of ``fn``, without PRNG keys."""
    wrapped = inspect.unwrap(fn)
    search = _Search(getattr(wrapped, "__globals__", None))
    search.function("", wrapped)  # names come from the function inside of jax.vmap and the like
    # The second search records no array twice. It returns how to rebuild ``fn`` itself.
    rebuild = search.function("", fn) or (lambda _: fn)
    names = unique([name for name, _ in search.named_arrays], set())
    arrays = [array for _, array in search.named_arrays]
    return State(dict(zip(names, arrays, strict=True)), rebuild, search.keys, search.has_modules)


class _Search:
    """One search through a function for arrays. An object without arrays has no Rebuild (None)."""

    def __init__(self, namespace: dict[str, Any] | None) -> None:
        self.namespace = namespace
        self.named_arrays: list[tuple[str, Any]] = []
        self.keys: list[Any] = []
        self.has_modules = False
        self._arrays: set[int] = set()
        self._functions: dict[int, tuple[Any, Rebuild | None]] = {}

    def function(self, name: str, fn: Any) -> Rebuild | None:
        """Record the arrays that ``fn`` holds; return how to rebuild ``fn`` with other arrays.

        None if ``fn`` holds no array. Each function is searched once, which ends recursion.
        """
        if id(fn) not in self._functions:
            self._functions[id(fn)] = fn, None
            members, assemble = _members(fn, self.namespace)
            rebuilds = [self._content(_name_of(name, member), member.content) for member in members]
            contents = [member.content for member in members]
            self._functions[id(fn)] = fn, _rebuild(contents, rebuilds, assemble)
        return self._functions[id(fn)][1]

    def _content(self, name: str, content: Any) -> Rebuild | None:
        """Record the arrays in ``content``, a pytree or nnx module; return its Rebuild."""
        leaves, make, modules = self._flatten(content)
        rebuilds = [self._leaf(join(name, path), leaf) for path, leaf in leaves]
        rebuild = _rebuild([leaf for _, leaf in leaves], rebuilds, make, always=modules)
        return _recording(rebuild) if modules and rebuild is not None else rebuild

    def _flatten(self, content: Any) -> tuple[list[tuple[Any, Any]], Assemble, bool]:
        """Return ``(leaves of content with paths, inverse, True if it holds nnx modules)``.

        The inverse builds ``content`` from leaves. An object that is no pytree has no leaves.
        """
        nnx = sys.modules.get("flax.nnx")
        try:
            if nnx is not None and _holds_modules(content, nnx):
                return (*self._flatten_modules(content, nnx), True)
            leaves, tree = jax.tree_util.tree_flatten_with_path(content)
        except (TypeError, ValueError):
            # Not a pytree, such as a dict whose keys cannot be sorted.
            return [], lambda new: content, False
        return leaves, lambda new: jax.tree.unflatten(tree, new), False

    def _flatten_modules(self, content: Any, nnx: Any) -> tuple[list[tuple[Any, Any]], Assemble]:
        """Return the leaves of nnx modules by ``nnx.split``, and the inverse.

        As a pytree, a module that occurs twice would become two modules.
        """
        definition, state = nnx.split(content)
        leaves, tree = jax.tree_util.tree_flatten_with_path(state)
        self.keys += jax.tree.leaves(nnx.filter_state(state, nnx.RngKey))
        self.has_modules = True

        def assemble(new: Sequence[Any]) -> Copy:
            """Return the modules with new leaves, and the contents of their variables."""
            state = jax.tree.unflatten(tree, new)
            contents = {path: content_of(variable) for path, variable in nnx.to_flat_state(state)}
            return nnx.merge(definition, state), contents

        return leaves, assemble

    def _leaf(self, name: str, leaf: Any) -> Rebuild | None:
        """Record an array once, or search a function; return its Rebuild, None for other leaves."""
        if _is_array(leaf):
            if id(leaf) not in self._arrays:
                self._arrays.add(id(leaf))
                self.named_arrays.append((name or "x", leaf))
            return lambda substitution: substitution.of(leaf)
        if isinstance(leaf, types.FunctionType | types.MethodType | functools.partial):
            return self.function(name, leaf)
        return None


def _rebuild(
    members: Sequence[Any],
    rebuilds: Sequence[Rebuild | None],
    assemble: Assemble,
    always: bool = False,
) -> Rebuild | None:
    """Return a function that rebuilds an object from rebuilt members.

    None if no member can change, unless ``always``.
    """
    if not always and all(rebuild is None for rebuild in rebuilds):
        return None

    def rebuild_all(substitution: Substitution) -> Any:
        """Return the object with each member rebuilt."""
        pairs = zip(members, rebuilds, strict=True)
        return assemble([old if make is None else make(substitution) for old, make in pairs])

    return rebuild_all


def _recording(rebuild: Callable[[Substitution], Copy]) -> Rebuild:
    """Return ``rebuild`` of nnx modules, which also records each copy in the substitution."""

    def rebuild_and_record(substitution: Substitution) -> Any:
        """Return the copied modules, and record them with the contents of their variables."""
        copy = rebuild(substitution)
        substitution.copies.append(copy)
        return copy[0]

    return rebuild_and_record


def is_abstract(leaf: Any) -> bool:
    """True for an array that is only a type, as ``jax.eval_shape`` returns."""
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _is_array(leaf: Any) -> bool:
    """True for an array, or the type of one, that does not hold PRNG keys."""
    kinds = jax.Array | np.ndarray | jax.ShapeDtypeStruct
    return isinstance(leaf, kinds) and not compat.is_extended(leaf.dtype)


def _name_of(name: str, member: Member) -> str:
    """Return the name of a member: its own, after ``name`` unless the member is global."""
    if member.is_global or not name:
        return member.name
    return f"{name}_{member.name}".strip("_")


def _members(fn: Any, namespace: dict[str, Any] | None) -> tuple[list[Member], Assemble]:
    """Return the objects that ``fn`` holds, and a function that rebuilds ``fn`` from others."""
    match fn:
        case types.MethodType():
            return [Member("", fn.__self__)], lambda new: types.MethodType(fn.__func__, new[0])
        case functools.partial():
            return _members_of_partial(fn)
        case types.FunctionType():
            return _members_of_function(fn, namespace)
    return [Member("", fn)], lambda new: new[0]


def _members_of_partial(fn: functools.partial[Any]) -> tuple[list[Member], Assemble]:
    """Return the function and the bound arguments of a partial, and how to rebuild the partial."""
    count, keys = len(fn.args), list(fn.keywords)
    names, _ = positional_names(fn.func, count, fn.keywords, partly=True)
    bound = (*zip(names, fn.args, strict=True), *fn.keywords.items())
    members = [Member("", fn.func), *(Member(name, content) for name, content in bound)]

    def make(new: Sequence[Any]) -> Any:
        """Return the partial of other members."""
        keywords = dict(zip(keys, new[1 + count :], strict=True))
        return functools.partial(new[0], *new[1 : 1 + count], **keywords)

    return members, make


def _members_of_function(
    fn: types.FunctionType, namespace: dict[str, Any] | None
) -> tuple[list[Member], Assemble]:
    """Return the closure variables and globals that ``fn`` reads, and how to rebuild ``fn``."""
    cells = list(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    filled = [(name, cell) for name, cell in cells if _is_filled(cell)]
    globals_to_replace = fn.__globals__ if fn.__globals__ is namespace else {}
    globals_read = [name for name in _names(fn.__code__) if name in globals_to_replace]
    members = [Member(name, cell.cell_contents) for name, cell in filled]
    members += [Member(name, globals_to_replace[name], is_global=True) for name in globals_read]

    def make(new: Sequence[Any]) -> Any:
        """Return a copy of ``fn`` with other closure and global variables."""
        contents = dict(zip([name for name, _ in filled], new, strict=False))
        closure = tuple(types.CellType(contents[n]) if n in contents else cell for n, cell in cells)
        changed = dict(zip(globals_read, new[len(filled) :], strict=True))
        scope = {**fn.__globals__, **changed} if changed else fn.__globals__
        function = types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, closure)
        function.__kwdefaults__ = fn.__kwdefaults__
        return functools.update_wrapper(function, fn)

    return members, make


def _is_filled(cell: types.CellType) -> bool:
    """True if the closure variable has a value; reading an empty one raises ValueError."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _names(code: types.CodeType) -> list[str]:
    """Return the global names that ``code`` and the functions inside it read."""
    loads = (i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")
    names = dict.fromkeys(loads)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return list(names)


def variables_of(module: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the variables of an nnx module with their paths."""
    nnx = sys.modules["flax.nnx"]
    yield from nnx.to_flat_state(nnx.state(module))


def content_of(variable: Any) -> Any:
    """Return the content of a variable."""
    return next(iter(jax.tree.leaves(variable)), None)


def _holds_modules(content: Any, nnx: Any) -> bool:
    """True if a leaf of ``content`` is an nnx module or variable."""
    kinds = (nnx.Module, nnx.Variable)
    leaves = jax.tree.leaves(content, is_leaf=lambda item: isinstance(item, kinds))
    return any(isinstance(leaf, kinds) for leaf in leaves)
