"""Folders of orbax, the checkpoints of flax: each weight is read when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, not_installed

_MARKS = ("_METADATA", "manifest.ocdbt", "_CHECKPOINT_METADATA", "checkpoint")
Keys = tuple[str, ...]


def is_orbax(folder: Path) -> bool:
    """True if orbax wrote ``folder``, or a manager of checkpoints that holds one item."""
    return any((place / mark).exists() for place in _places(folder) for mark in _MARKS)


def open_orbax(folder: Path) -> dict[str, ir.TensorProtocol]:
    """The arrays below ``folder``, named by their paths with dots.

    Raises UsageError E404 if orbax is not installed, InvalidModel E341 for what it cannot read.
    """
    try:
        import orbax.checkpoint as orbax
    except ModuleNotFoundError as error:
        raise not_installed("orbax-checkpoint", "demo", "reading its checkpoints") from error
    place = next(p for p in _places(folder) if any((p / mark).exists() for mark in _MARKS))
    try:
        with orbax.PyTreeCheckpointer() as checkpointer:
            tree = checkpointer.metadata(place.absolute()).item_metadata.tree
    except (ValueError, OSError, KeyError, AttributeError) as error:
        raise InvalidModel("E341", f"cannot read {folder.name!r}", why=str(error)) from error
    found: dict[str, ir.TensorProtocol] = {}
    for keys, leaf in _leaves(tree, ()):
        name = ".".join(keys)
        kind = ir.DataType.from_numpy(np.dtype(leaf.dtype))
        read = partial(_read, place.absolute(), keys)
        found[name] = ir.LazyTensor(read, kind, ir.Shape(leaf.shape), name=name)
    return found


def _places(folder: Path) -> tuple[Path, ...]:
    return folder, folder / "default", folder / "state", folder / "params"


def _leaves(tree: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    items = tree.items() if isinstance(tree, Mapping) else enumerate(tree)
    for key, item in items:
        if isinstance(item, Mapping | list | tuple):
            yield from _leaves(item, (*keys, str(key)))
        elif getattr(item, "shape", None) is not None:
            yield (*keys, str(key)), item


def _read(folder: Path, keys: Keys) -> ir.Tensor:
    import orbax.checkpoint as orbax

    restore = orbax.RestoreArgs(restore_type=np.ndarray)
    arguments = orbax.args.PyTreeRestore(
        item=_nested(keys, 0), restore_args=_nested(keys, restore), partial_restore=True
    )
    with orbax.PyTreeCheckpointer() as checkpointer:
        found = checkpointer.restore(folder, args=arguments)
    for key in keys:
        found = found[key]
    return ir.Tensor(np.asarray(found))


def _nested(keys: Keys, leaf: Any) -> Any:
    for key in reversed(keys):
        leaf = {key: leaf}
    return leaf
