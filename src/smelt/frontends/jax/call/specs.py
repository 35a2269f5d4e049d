"""Input specs: text, arrays and ``ShapeDtypeStruct`` objects in pytrees, all in one symbolic scope.

Text is ``"f32[B,28,28,1]"``: element type and dims (numbers or expressions in symbols, ``2*B``,
``S//2``, ``S % 8``, ``max(B, 4)``). ``"key[]"`` is a PRNG key.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import jax
import ml_dtypes
import numpy as np

from smelt.errors import UsageError
from smelt.frontends.jax import compat, prng
from smelt.frontends.jax.open_sizes import multiples
from smelt.frontends.jax.open_sizes.size_texts import InPython, read_size, spelled

_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
_COMPLEX = {"c64": np.complex64, "c128": np.complex128}
_INTEGERS = {f"{s}{n}": np.dtype(f"{s}{n // 8}") for s in "iu" for n in (8, 16, 32, 64)}
DTYPES: dict[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in {**_FLOATS, **_COMPLEX, **_INTEGERS, "bool": np.bool_}.items()
}
"""Element types by their short names; NumPy's names are accepted too."""

KEY = "key"
"""The type name of PRNG keys: ``"key[]"`` is one key, ``"key[B]"`` are B keys."""

NO_MULTIPLES: multiples.Multiples = {}

_TEXT = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)


def resolve(
    specs: Sequence[Any], constraints: Iterable[str], x64: bool
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return ``specs`` with each leaf as a ``ShapeDtypeStruct``, and the list of these leaves.

    Raises UsageError E104 for a leaf that is not a spec, and for invalid ``constraints``.
    """
    for node in jax.tree.leaves(tuple(specs), is_leaf=_is_bare_shape):
        if _is_bare_shape(node):
            dims = ",".join(str(dim).strip() for dim in node)
            raise UsageError(
                "E104",
                f"{node!r} is not an input spec",
                why="it has dims but no element type; tuples and lists hold several inputs",
                fix=f"write 'f32[{dims}]'",
            )
    leaves, tree = jax.tree.flatten(tuple(specs))
    texts = tuple(constraints)
    scope = _scope(leaves, texts)
    divisors = multiples.multiples_of(map(_compared, texts))
    with compat.x64(x64):
        structs = [_struct(leaf, scope, x64, divisors) for leaf in leaves]
    return jax.tree.unflatten(tree, structs), structs


def constraints_on(structs: Sequence[Any], texts: Sequence[str]) -> list[str]:
    """Return the constraints ``texts`` in Python's spelling.

    If ``texts`` is empty, those of the scope of the caller's dims.
    """
    dims = (dim for struct in structs for dim in struct.shape if compat.is_symbolic(dim))
    first = next(dims, None)
    sources = texts or (() if first is None else compat.constraints_of(first))
    compared = [InPython().visit(_compared(text)) for text in sources]
    return [ast.unparse(ast.fix_missing_locations(tree)) for tree in compared]


def _is_bare_shape(node: Any) -> bool:
    """True for dims without an element type, at least one of them named, such as ``("B", 4)``."""
    if not isinstance(node, tuple | list) or not any(isinstance(dim, str) for dim in node):
        return False
    return all(isinstance(d, int) or (isinstance(d, str) and d.isidentifier()) for d in node)


def _scope(leaves: Sequence[Any], constraints: tuple[str, ...]) -> compat.SymbolicScope:
    """Return the scope of the caller's own dims, or a new one with ``constraints``."""
    scopes: list[compat.SymbolicScope] = []
    for leaf in leaves:
        for dim in getattr(leaf, "shape", ()):
            if compat.is_symbolic(dim) and not any(compat.scope_of(dim) is s for s in scopes):
                scopes.append(compat.scope_of(dim))
    if len(scopes) > 1:
        raise UsageError(
            "E104",
            "the input specs use symbols of several scopes",
            why="the same name in two scopes means two sizes",
            fix="create all dims in one jax.export.SymbolicScope, or name them by strings",
        )
    if scopes and constraints:
        raise UsageError(
            "E104",
            "the scope of the dims and the trace both have constraints",
            why="the dims of the input specs already have a scope",
            fix="give the constraints to jax.export.SymbolicScope",
        )
    if scopes:
        return scopes[0]
    return _scope_of(constraints)


@lru_cache(maxsize=64)
def _scope_of(constraints: tuple[str, ...]) -> compat.SymbolicScope:
    """Return one scope for equal constraints, because JAX caches inner traces by argument types."""
    try:
        return compat.SymbolicScope(_constraints(constraints))
    except ValueError as error:
        reason = multiples.in_callers_names(str(error))
        raise UsageError(
            "E104",
            f"the constraints {list(constraints)} are not valid",
            why=reason,
            fix="write each as a comparison, such as 'S % 8 == 0' or 'B >= 1'",
        ) from error


def _constraints(texts: Iterable[str]) -> list[str]:
    """Return ``texts`` in JAX's spelling, without divisibility constraints (see ``multiples``)."""
    compared = [_compared(text) for text in texts]
    divisors = multiples.multiples_of(compared)
    jax_texts = []
    for constraint in compared:
        symbol_and_divisor = multiples.divisor_of(constraint)
        if symbol_and_divisor is None or symbol_and_divisor[0] not in divisors:
            on_quotients = multiples.on_quotients(constraint, divisors)
            sides = (on_quotients.left, *on_quotients.comparators)
            left, right = map(spelled, sides)
            jax_texts.append(f"{left} {_RELATIONS[type(on_quotients.ops[0])]} {right}")
    return jax_texts


_RELATIONS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.GtE: ">=", ast.LtE: "<="}


def _compared(text: str) -> ast.Compare:
    """Return the constraint ``text`` as Python's syntax tree; raises UsageError E104."""
    for relation, operator in (("==", ast.Eq()), (">=", ast.GtE()), ("<=", ast.LtE())):
        left, separator, right = text.partition(relation)
        if separator:
            return ast.Compare(read_size(left), [operator], [read_size(right)])
    raise UsageError(
        "E104",
        f"{text!r} is not a constraint",
        fix="for instance 'B >= 1' or 'S % 8 == 0'",
        why="a constraint compares two expressions of symbolic dims",
    )


def _struct(
    leaf: Any, scope: compat.SymbolicScope, x64: bool, divisors: multiples.Multiples
) -> Any:
    """Return one leaf as a ``ShapeDtypeStruct``; raises E104 for 64 bits without ``x64``."""
    if isinstance(leaf, str):
        struct = parse(leaf, scope, divisors)
    elif isinstance(leaf, jax.ShapeDtypeStruct):
        dims = [str(dim) for dim in leaf.shape]
        named = any(isinstance(dim, str) for dim in leaf.shape)
        struct = compat.struct(_dims(dims, scope, divisors) if named else leaf.shape, leaf.dtype)
    else:
        return struct_of(leaf)
    if compat.is_extended(struct.dtype):
        return struct
    dtype = np.dtype(struct.dtype)
    if dtype.kind in "iufc" and dtype.itemsize == (16 if dtype.kind == "c" else 8) and not x64:
        raise UsageError(
            "E104",
            f"an input is {dtype.name}, but 64-bit types are off",
            why="JAX would silently use 32 bits",
            fix="trace with x64=True or --x64, enable jax_enable_x64, or use a 32-bit type",
        )
    return struct


def typed(array: Any, text: str) -> Any:
    """Return ``array`` with the type of the spec ``text``.

    For a spec such as ``"key[]"``, these are the PRNG keys that the integers ``array`` stand for.
    """
    key = text.partition("[")[0].strip() == KEY
    return jax.random.wrap_key_data(jax.numpy.asarray(array)) if key else array


def note(aval: Any) -> str:
    """Return the remark for the model about an input or output of this JAX type.

    It says how to make the integers of PRNG keys; empty for other types.
    """
    if not compat.is_extended(aval.dtype):
        return ""
    return f"jax.random.key_data of PRNG keys, {compat.short_type(aval)}"


def struct_of(array: Any) -> Any:
    """Return the spec of an array or a Python number; raises UsageError E104 for anything else."""
    try:
        aval = compat.aval_of(array)
    except TypeError as error:
        raise UsageError(
            "E104",
            f"{array!r} is not an input spec",
            why=f"a {type(array).__name__} cannot be an input",
            fix="give an array, a jax.ShapeDtypeStruct or text such as 'f32[B,28,28,1]', and pass"
            " constant arguments as static={...}",
        ) from error
    return compat.struct(aval.shape, aval.dtype, aval.weak_type)


def parse(
    text: str,
    scope: compat.SymbolicScope | None = None,
    divisors: multiples.Multiples = NO_MULTIPLES,
) -> Any:
    """Return the spec of the text ``dtype[dim,...]``; raises UsageError E104 if it is not one.

    A symbol in ``divisors``, which the constraints make a multiple of a number, becomes a product.
    """
    match = _TEXT.fullmatch(text)
    dtype = _dtype(match.group(1)) if match else None
    if match is None or dtype is None:
        raise UsageError(
            "E104",
            f"{text!r} is not an input spec",
            why="it is not an element type and sizes in brackets"
            if match is None
            else f"{match.group(1)!r} is not an element type",
            fix="write DTYPE[DIMS], for instance 'f32[B,28,28,1]'; types: "
            f"{', '.join((*DTYPES, KEY))}; pass a constant text argument as static={{...}}",
        )
    dims = match.group(2).strip()
    return compat.struct(_dims(_split(dims), scope or compat.SymbolicScope(), divisors), dtype)


def _dtype(name: str) -> Any:
    """Return the element type of a name, or None."""
    if name == KEY:
        return prng.key_dtype()
    if name in DTYPES:
        return DTYPES[name]
    try:
        return np.dtype(getattr(ml_dtypes, name, None) or name)
    except TypeError:
        return None


def _split(dims: str) -> list[str]:
    """Return the dims between commas outside of parentheses; a trailing comma is allowed."""
    parts = re.split(r",(?![^()]*\))", dims)
    if parts and not parts[-1].strip():
        parts.pop()
    return parts


def _dims(
    texts: Sequence[str], scope: compat.SymbolicScope, divisors: multiples.Multiples
) -> tuple[Any, ...]:
    """Return the dims of ``texts`` in ``scope``; raises E104."""
    trees = [multiples.with_products(read_size(text), divisors) for text in texts]
    dims = ", ".join(map(spelled, trees))
    try:
        shape = compat.symbolic_shape(f"({dims},)" if texts else "()", scope)
    except (ValueError, TypeError) as error:
        what = f"the dims {', '.join(texts)!r} are wrong"
        raise UsageError(
            "E104",
            what,
            why=str(error).splitlines()[0],
            fix="write the type as 'f32[B,28,28,1]': an element type and sizes or names",
        ) from error
    if any(isinstance(dim, int) and dim < 0 for dim in shape):
        raise UsageError(
            "E104",
            f"the dims {', '.join(texts)!r} contain a negative size",
            why="a dim has 0 elements or more",
            fix="give sizes of 0 or more, or names",
        )
    return shape
