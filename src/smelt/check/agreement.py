"""Compare two interfaces, and choose sizes of symbolic dims at which both models can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.runtime.interface import Interface, Port

DEFAULT_SIZES = (1, 3)
"""Default sizes of a symbolic dim: 1 tests broadcasting and special cases, 3 the general case."""

Dims = Mapping[str, int | Sequence[int]]


def disagreements(a: Interface, b: Interface) -> list[str]:
    """Return, as sentences, the differences for which callers of ``a`` could not call ``b``.

    These are differences in number, order, names, element types, ranks and fixed sizes.
    """
    sentences: list[str] = []
    for word, left, right in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        if len(left) != len(right):
            names = ", ".join(port.name for port in right)
            sentences.append(f"{len(left)} {word}s became {len(right)}: {names}")
            continue
        for index, (before, after) in enumerate(zip(left, right, strict=True)):
            sentences += _compare_ports(f"{word} {index}", before, after)
    return sentences


def _compare_ports(place: str, a: Port, b: Port) -> Iterator[str]:
    """Yield the differences of two ports that a caller would notice."""
    if a.name != b.name:
        yield f"{place} {a.name!r} is now called {b.name!r}"
    if a.kind != b.kind or (a.dtype != b.dtype and a.dtype is not None and b.dtype is not None):
        yield f"{place} {a.name!r} was {a}, is {b}"
        return
    if a.default is not None and b.default is None:
        yield f"{place} {a.name!r} had a default and lost it"
    if a.shape is None or b.shape is None:
        return
    if len(a.shape) != len(b.shape):
        yield f"{place} {a.name!r} had rank {len(a.shape)}, has {len(b.shape)}"
        return
    for before, after in zip(a.shape, b.shape, strict=True):
        if isinstance(before, int) and isinstance(after, int) and before != after:
            yield f"{place} {a.name!r} was {a}, is {b}"
            return


def interface_changes(a: Interface, b: Interface) -> list[str]:
    """Return every change from ``a`` to ``b``, one sentence each.

    Covers the number, names, order and types of ports, sizes and names of dims, and defaults.
    ``disagreements`` is less strict: it tests whether callers of ``a`` can call ``b``.
    """
    sentences: list[str] = []
    for word, left, right in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        left_names, right_names = ([port.name for port in ports] for ports in (left, right))
        new_ports = {port.name: port for port in right}
        if len(left_names) != len(right_names):
            sentences.append(f"{len(left_names)} {word}s became {len(right_names)}")
        if set(left_names) == set(right_names) and left_names != right_names:
            orders = ", ".join(left_names), ", ".join(right_names)
            sentences.append(f"the {word}s {orders[0]} come in another order: {orders[1]}")
        elif len(left_names) == len(right_names):
            new_ports = dict(zip(left_names, right, strict=True))
        else:
            sentences += [
                f"{word} {name!r} is gone" for name in left_names if name not in new_ports
            ]
            sentences += [
                f"{word} {port.name!r} is new: {port}"
                for port in right
                if port.name not in left_names
            ]
        pairs = ((port, new_ports[port.name]) for port in left if port.name in new_ports)
        sentences += [f"{word} {text}" for pair in pairs for text in _port_changes(*pair)]
    return sentences


def _port_changes(a: Port, b: Port) -> Iterator[str]:
    """Yield the changes of one port: its name, its declared type, its default."""
    if a.name != b.name:
        yield f"{a.name!r} is now called {b.name!r}"
    if _declared(a) != _declared(b):
        yield f"{b.name!r} was {_declared(a)}, is {_declared(b)}"
    if (a.default is None) != (b.default is None):
        yield f"{b.name!r} {'has a default now' if a.default is None else 'lost its default'}"


def _declared(port: Port) -> str:
    """Return the type as the model declares it, without names invented for unnamed dims."""
    shape = tuple(
        ir.SymbolicDim(None)
        if isinstance(dim, ir.SymbolicDim) and dim.value in port.unnamed
        else dim
        for dim in port.shape or ()
    )
    return str(port if port.shape is None else replace(port, shape=shape))


def trial_sizes(a: Interface, b: Interface | None, dims: Dims | None) -> list[dict[str, int]]:
    """Return the sizes of the symbolic dims, one dict for each trial.

    ``dims`` gives one or several sizes for a name. Other named dims take ``DEFAULT_SIZES``, where
    the larger size differs for each name, so that two confused dims are noticed. Unnamed dims are
    1, since some of them may have to be equal. A dim that ``b`` fixes has that size. Trial ``k``
    takes the k-th size of every name, cyclically. Raises UsageError E633 for an unknown name.
    """
    symbols = a.symbols()
    unnamed = frozenset().union(*(port.unnamed for port in a.inputs))
    requested = dict(dims or {})
    unknown = sorted(set(requested) - set(symbols))
    if unknown:
        listed = ", ".join(symbols) or "none"
        raise UsageError(
            "E633",
            f"there is no dim {unknown[0]!r}",
            why=f"symbolic dims: {listed}",
            fix="`smelt inspect` shows the symbolic dims",
        )
    fixed = fixed_sizes(a, b) if b is not None else {}
    choices: dict[str, tuple[int, ...]] = {}
    for index, symbol in enumerate(symbols):
        if symbol in fixed:
            choices[symbol] = (fixed[symbol],)
        elif symbol in requested:
            choices[symbol] = _requested_sizes(symbol, requested[symbol])
        elif symbol in unnamed:
            choices[symbol] = (1,)
        else:
            choices[symbol] = (DEFAULT_SIZES[0], DEFAULT_SIZES[1] + index)
    count = max((len(sizes) for sizes in choices.values()), default=1)
    return [{name: sizes[k % len(sizes)] for name, sizes in choices.items()} for k in range(count)]


def _requested_sizes(symbol: str, requested: int | Sequence[int]) -> tuple[int, ...]:
    """Return the sizes that the user requests for ``symbol``; raises UsageError E633."""
    sizes = (requested,) if isinstance(requested, int) else tuple(requested)
    if not sizes or min(sizes) < 0:
        raise UsageError(
            "E633",
            f"{list(sizes)} cannot be the sizes of {symbol!r}",
            why="a list of sizes contains at least one number, each 0 or more",
            fix=f"--dim {symbol}=1,3",
        )
    return sizes


def fixed_sizes(a: Interface, b: Interface) -> dict[str, int]:
    """Return the symbols of ``a`` that are numbers in ``b``, with these numbers."""
    sizes: dict[str, int] = {}
    for before, after in zip(a.inputs, b.inputs, strict=False):
        for dim, size in zip(before.shape or (), after.shape or (), strict=False):
            if isinstance(dim, ir.SymbolicDim) and dim.value and isinstance(size, int):
                sizes.setdefault(dim.value, size)
    return sizes


def sizes_together(trials: Iterable[Mapping[str, int]]) -> str:
    """Return the sizes of several trials as text: ``batch=1,2 seq=8``."""
    sizes_by_name: dict[str, dict[int, None]] = {}
    for sizes in trials:
        for name, size in sizes.items():
            sizes_by_name.setdefault(name, {})[size] = None
    texts = (f"{name}={','.join(map(str, sizes))}" for name, sizes in sizes_by_name.items())
    return " ".join(texts) or "fixed sizes"


def sizes_in_words(sizes: Mapping[str, int]) -> str:
    """Return the sizes of one trial as text: ``batch=1 seq=8``."""
    return " ".join(f"{name}={size}" for name, size in sizes.items()) or "fixed sizes"
