"""Read folders of orbax, the checkpoints of flax: each weight is read on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, not_installed

_MARKS = ("_METADATA", "manifest.ocdbt", "checkpoint")
"""Files that mark the folder of a tree, those of newer formats first."""

_ITEMS = ("default", "state", "params")
"""Usual names of the item that holds the weights; items of other names come after these."""

_STEP = "_CHECKPOINT_METADATA"
"""A file in the folder of a tree, or of a step with several items."""

Keys = tuple[str, ...]


def is_orbax(folder: Path) -> bool:
    """True if orbax wrote ``folder``: a tree, or a step of a checkpoint manager."""
    return (folder / _STEP).exists() or _tree(folder) is not None


def _tree(folder: Path) -> Path | None:
    """Return the folder of the tree, ``folder`` itself or an item of it; None if there is none."""
    for candidate in (folder, *(folder / item for item in _ITEMS), *_items(folder)):
        if any((candidate / mark).exists() for mark in _MARKS):
            return candidate
    return None


def _items(folder: Path) -> list[Path]:
    """Return the only folder below a step's folder that holds a tree of arrays, as a list.

    The user chose its name, so it need not be one of ``_ITEMS``. Empty if ``folder`` is not a step,
    or if several folders hold trees.
    """
    if not (folder / _STEP).exists():
        return []
    trees = [p.parent for p in sorted(folder.glob(f"*/{_MARKS[0]}"))]
    return trees if len(trees) == 1 else []


def open_orbax(folder: Path) -> dict[str, ir.TensorProtocol]:
    """Return the arrays below ``folder``, named by their paths with dots.

    Raises UsageError E404 if orbax is not installed, InvalidModel E341 if it cannot read them.
    """
    try:
        import orbax.checkpoint as orbax
    except ModuleNotFoundError as error:
        raise not_installed("orbax-checkpoint", "demo", "reading its checkpoints") from error
    tree_folder = _tree(folder)
    if tree_folder is None:
        items = [item.name for item in sorted(folder.iterdir()) if item.is_dir()]
        raise InvalidModel(
            "E341",
            f"{folder.name!r} is not a tree of weights",
            why=f"it is a step of a checkpoint manager, with {', '.join(items) or 'nothing'} in it",
            fix="name the folder of the item that holds the weights",
        )
    try:
        with orbax.PyTreeCheckpointer() as checkpointer:
            tree = checkpointer.metadata(tree_folder.absolute()).item_metadata.tree
    except (ValueError, OSError, KeyError, AttributeError) as error:
        raise InvalidModel(
            "E341",
            f"cannot read {folder.name!r}",
            why=str(error),
            fix="check that the folder is a complete orbax checkpoint, and that orbax is installed",
        ) from error
    tensors: dict[str, ir.TensorProtocol] = {}
    for keys, leaf in _leaves(tree, ()):
        name = ".".join(keys)
        kind = ir.DataType.from_numpy(np.dtype(leaf.dtype))
        read = partial(_read, tree_folder.absolute(), keys)
        tensors[name] = ir.LazyTensor(read, kind, ir.Shape(leaf.shape), name=name)
    return tensors


def _leaves(tree: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    """Yield the arrays below ``tree`` with their paths."""
    items = tree.items() if isinstance(tree, Mapping) else enumerate(tree)
    for key, item in items:
        if isinstance(item, Mapping | list | tuple):
            yield from _leaves(item, (*keys, str(key)))
        elif getattr(item, "shape", None) is not None:
            yield (*keys, str(key)), item


def _read(folder: Path, keys: Keys) -> ir.Tensor:
    """Return the array at the path ``keys`` of the tree in ``folder``; no other array is read."""
    import orbax.checkpoint as orbax

    restore = orbax.RestoreArgs(restore_type=np.ndarray)
    arguments = orbax.args.PyTreeRestore(
        item=_nested(keys, 0), restore_args=_nested(keys, restore), partial_restore=True
    )
    with orbax.PyTreeCheckpointer() as checkpointer:
        restored = checkpointer.restore(folder, args=arguments)
    for key in keys:
        restored = restored[key]
    return ir.Tensor(np.asarray(restored))


def _nested(keys: Keys, leaf: Any) -> Any:
    """Return nested dicts with ``leaf`` at the path ``keys``."""
    for key in reversed(keys):
        leaf = {key: leaf}
    return leaf
