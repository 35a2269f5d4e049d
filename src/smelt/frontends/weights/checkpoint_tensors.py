"""The forms of a checkpoint: a path, arrays by name, or a tree of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.weights.checkpoint import open_checkpoint

Tensors: TypeAlias = "Mapping[str, Any]"
"""Arrays or tensors by name; in nested dicts and lists, the path of an array is its name."""


def tensors_of(checkpoint: object) -> dict[str, ir.TensorProtocol]:
    """Return the tensors of ``checkpoint`` by name; in a tree, the name is the path with dots.

    Raises InvalidModel E341 if ``checkpoint`` is not a checkpoint, or if a leaf is not an array;
    also the errors of ``open_checkpoint``.
    """
    if isinstance(checkpoint, str | PathLike):
        return dict(open_checkpoint(checkpoint))
    if not isinstance(checkpoint, Mapping):
        raise InvalidModel(
            "E341",
            f"{type(checkpoint).__name__} is not a checkpoint",
            fix="give the path of a checkpoint, or arrays by name",
            why="it is neither a path nor a dict of arrays",
        )
    return {name: _as_tensor(name, leaf) for name, leaf in _leaves(checkpoint, ())}


def _leaves(tree: object, keys: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Yield the leaves of a tree, each with its path."""
    if isinstance(tree, Mapping):
        for key, item in tree.items():
            yield from _leaves(item, (*keys, str(key)))
    elif isinstance(tree, list | tuple):
        for i, item in enumerate(tree):
            yield from _leaves(item, (*keys, str(i)))
    else:
        yield ".".join(keys), tree


def _as_tensor(name: str, leaf: Any) -> ir.TensorProtocol:
    """Return a leaf as a tensor; raises InvalidModel E341 if it is not an array."""
    if isinstance(leaf, ir.TensorProtocol):
        return leaf
    if isinstance(leaf, int | float | complex | np.generic) or hasattr(leaf, "__array__"):
        array = np.asarray(leaf)
        if not array.dtype.hasobject:
            return ir.Tensor(array)
    raise InvalidModel(
        "E341",
        f"{name!r} is not an array",
        why=f"its type is {type(leaf).__name__}",
        fix="remove entries that are not weights; arrays may be nested in dicts and lists",
    )
