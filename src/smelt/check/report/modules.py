"""Group nodes by the modules of the source program, or else by repeated blocks.

The leaves of a tree are node numbers; groups are ``{"name", "kids"}``. No group has more than
``MOST`` kids, so the page can show a model of any size one group at a time.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.check.report.shown import shown
from smelt.ir.provenance import META_KEY

MOST = 100
"""The most kids of a group; a larger group is split into groups."""

PIECE = 40
"""The least number of kids of a group that holds an arbitrary range of nodes."""

DEPTH = 24
"""The deepest nesting of modules that is kept; names may have any number of slashes."""

_MODULE = re.compile(r"[A-Z]|.*\d$")
"""Matches names of modules and layers, ``Dense`` or ``layers_0``, but not those of functions."""

Tree: TypeAlias = "int | dict[str, Any]"
Path: TypeAlias = tuple[str, ...]

_SCOPES, _CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"
"""Keys of the metadata where PyTorch's exporter writes the modules around a node and
their classes.
"""

_NO_MODULE = "_empty_nn_module_stack"
"""PyTorch's name for the scope of nodes outside of all modules."""

_STACK = re.compile(r" in .* \[([^\]]+)\]$")
"""The name stack at the end of ``file:line in function [Net/block_0/Dense_0]``."""


def path_of(node: ir.Node) -> Path:
    """Return the names of the modules around ``node``, outermost first.

    They come from PyTorch's scopes, else from JAX's name stack, else from the slashes in the node's
    name.
    """
    scopes = node.metadata_props.get(_SCOPES)
    if scopes is not None:
        return _of_scopes(scopes, node.metadata_props.get(_CLASSES, ""))
    origin = node.meta.get(META_KEY)
    stack = _STACK.search(origin.sources[0]) if origin is not None and origin.sources else None
    if stack is not None:
        parts = stack[1][:2000].split("/")
        if not _MODULE.match(parts[-1]):  # a function such as relu, which many modules call
            parts.pop()
    else:
        parts = (node.name or "")[:2000].strip("/").split("/")[:-1]
    return tuple(shown(part, 60) for part in parts[:DEPTH] if part)


def _of_scopes(scopes: str, classes: str) -> Path:
    """Return the modules of PyTorch's scopes, each with its class if that is known.

    Scopes ``"['', 'blocks.0', 'blocks.0.gelu', 'gelu']"`` of the classes ``"['nets.Bert',
    'nets.Block', 'torch.nn.GELU', 'aten.gelu']"`` become ``("blocks.0 Block", "gelu GELU")``: each
    name is written without that of the module around it.
    """
    names, kinds = _strings(scopes), _strings(classes)
    if len(kinds) != len(names):
        kinds = [""] * len(names)
    path: list[str] = []
    outer = ""
    for name, kind in list(zip(names, kinds, strict=True))[:-1][:DEPTH]:
        if name and not name.startswith(_NO_MODULE):
            own = kind.rpartition(".")[2]
            label = name.removeprefix(f"{outer}.")
            path.append(shown(f"{label} {own}" if own.isidentifier() else label, 60))
            outer = name
    return tuple(path)


def _strings(text: str) -> list[str]:
    """Return the strings of a list that is written as Python, or nothing if it is none."""
    try:
        items = ast.literal_eval(text[:4000])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [str(item) for item in items] if isinstance(items, list) else []


def tree_of(items: Sequence[tuple[Path, Tree, str]], is_placed: bool = False) -> list[Tree]:
    """Return the kids of the root, for ``items`` (path, leaf or group, label) in graph order.

    A label is the operator of a node or the name of a group; equal sequences of labels are repeated
    blocks. With ``is_placed`` the paths are groups of another model's tree, so groups of one node
    are kept.
    """
    return [tree for tree, _ in _kids(items, 0, is_placed)]


def _kids(
    items: Sequence[tuple[Path, Tree, str]], depth: int, is_placed: bool
) -> list[tuple[Tree, str]]:
    """Return the kids of the group at ``depth``: its own leaves, and one group for each next
    module.

    A group stands at the place of its first item.
    """
    kids_here: list[tuple[Tree, str]] = []
    inner: dict[str, list[tuple[Path, Tree, str]]] = {}
    places: dict[str, int] = {}
    for path, tree, label in items:
        if len(path) <= depth:
            kids_here.append((tree, label))
            continue
        if path[depth] not in inner:
            places[path[depth]] = len(kids_here)
            inner[path[depth]] = []
            kids_here.append((0, ""))
        inner[path[depth]].append((path, tree, label))
    for name, members in inner.items():
        inner_kids = _kids(members, depth + 1, is_placed)
        if len(inner_kids) > 1 or is_placed:
            kids_here[places[name]] = _group(name, inner_kids)
        else:
            kids_here[places[name]] = _with_name_before(name, inner_kids[0])
    return _as_few_kids(kids_here)


def _group(name: str, kids: Sequence[tuple[Tree, str]]) -> tuple[Tree, str]:
    """Return a group and its label, in which ``#`` replaces each number."""
    return {"name": name, "kids": [tree for tree, _ in kids]}, re.sub(r"\d+", "#", name)


def _with_name_before(name: str, child: tuple[Tree, str]) -> tuple[Tree, str]:
    """Return ``child``, the only child of the group ``name``, as a group called ``name/its name``.

    A single node is returned unchanged, without a group around it.
    """
    subtree, _ = child
    if isinstance(subtree, dict) and "node" not in subtree:
        return _group(f"{name}/{subtree['name']}", [(each, "") for each in subtree["kids"]])
    return child


def _as_few_kids(kids: list[tuple[Tree, str]]) -> list[tuple[Tree, str]]:
    """Return ``kids`` as at most ``MOST``: repeated blocks become groups, then ranges of equal
    length.
    """
    if len(kids) <= MOST:
        return kids
    repeat = _repeat([label for _, label in kids])
    if repeat is not None:
        start, period, count = repeat
        blocks = []
        for index in range(count):
            part = kids[start + index * period : start + (index + 1) * period]
            blocks.append(_group(f"block {index + 1} of {count}", _as_few_kids(part)))
        kids = [*kids[:start], *blocks, *kids[start + period * count :]]
        if len(kids) <= MOST:
            return kids
    size = max(PIECE, -(-len(kids) // MOST))
    pieces = [kids[at : at + size] for at in range(0, len(kids), size)]
    return [_group(f"part {n + 1} of {len(pieces)}", _as_few_kids(p)) for n, p in enumerate(pieces)]


def _repeat(labels: Sequence[str]) -> tuple[int, int, int] | None:
    """Return ``(start, period, count)`` of the repeated blocks that cover most labels, or None.

    Candidates for the period are the 24 most frequent distances between equal labels, from 4 on. A
    longer period wins only if its blocks cover 20% more labels.
    """
    last_index: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for index, label in enumerate(labels):
        if label in last_index:
            distances[index - last_index[label]] += 1
        last_index[label] = index
    best: tuple[int, int, int] | None = None
    for period in sorted(distance for distance, _ in distances.most_common(24) if distance >= 4):
        start, length = _longest_run(labels, period)
        count = length // period + 1
        if count >= 3 and (best is None or count * period > 1.2 * best[1] * best[2]):
            best = (start, period, count)
    return best


def _longest_run(labels: Sequence[str], period: int) -> tuple[int, int]:
    """Return the start and length of the longest run with ``labels[i] == labels[i + period]``."""
    best = (0, 0)
    start = 0
    for index in range(len(labels) - period + 1):
        if index + period < len(labels) and labels[index] == labels[index + period]:
            continue
        if index - start > best[1]:
            best = (start, index - start)
        start = index + 1
    return best
