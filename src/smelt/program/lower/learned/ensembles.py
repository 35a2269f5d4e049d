"""Tree ensembles as ai.onnx.ml 5 writes them: nodes and leaves in separate attributes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.learned.scores import ML, transformed
from smelt.program.lower.learned.trees import Trees, aggregated
from smelt.program.lower.registry import lowers

MODES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
MEMBER = 6
"""The number of BRANCH_MEMBER in ``nodes_modes``: the node tests whether a value is in a set."""


@lowers(f"{ML}::TreeEnsemble")
def tree_ensemble(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the aggregated leaf weights [N, targets] of the trees for features [N, features]."""
    m, attributes = Steps(cx), node.attributes
    x = m.array(node.inputs[0])
    trees = _trees(node)
    targets = np.asarray(attributes.get_ints("leaf_targetids", ()))
    has_target = targets[:, None] == np.arange(attributes.get_int("n_targets", 1))
    weights = np.where(has_target, _numbers(node, "leaf_weights")[:, None], 0)
    mode = MODES[attributes.get_int("aggregate_function", 1)]
    result = aggregated(m, trees.leaves(m, x), weights, has_target, mode, x.dtype)
    transform = attributes.get_int("post_transform", 0)
    if transform > 2:
        raise cx.refuse(f"smelt does not lower post_transform {transform}")
    m.set_output(node.outputs[0], transformed(m, result, TRANSFORMS[transform]))


def _trees(node: ir.Node) -> Trees:
    """Return the trees in the attributes of ``node``."""
    attributes = node.attributes
    features = np.asarray(attributes.get_ints("nodes_featureids", ()))
    leaves = len(attributes.get_ints("leaf_targetids", ()))
    modes = _numbers(node, "nodes_modes").astype(np.int64)
    missing = np.asarray(attributes.get_ints("nodes_missing_value_tracks_true", ()) or [0])
    return Trees(
        np.asarray(attributes.get_ints("tree_roots", ())),
        features,
        _numbers(node, "nodes_splits"),
        modes,
        missing,
        (
            _successors(node, "true", len(features), leaves),
            _successors(node, "false", len(features), leaves),
        ),
        _members(node, modes, len(features) + leaves),
    )


def _numbers(node: ir.Node, name: str) -> np.ndarray:
    """Return the tensor attribute ``name``."""
    return np.asarray(node.attributes[name].as_tensor().numpy())


def _successors(node: ir.Node, side: str, count: int, leaves: int) -> np.ndarray:
    """Return the successors on the ``side`` "true" or "false" of ``count`` nodes and ``leaves``.

    Nodes are numbered from 0, leaves from ``count``. The successor of a leaf is the leaf itself.
    """
    ids = np.asarray(node.attributes.get_ints(f"nodes_{side}nodeids", ()))
    is_leaf = np.asarray(node.attributes.get_ints(f"nodes_{side}leafs", ()), bool)
    return np.concatenate([np.where(is_leaf, ids + count, ids), count + np.arange(leaves)])


def _members(node: ir.Node, modes: np.ndarray, count: int) -> np.ndarray:
    """Return the member set of each node as a row of [``count``, largest set].

    ``count`` is the number of nodes and leaves, ``modes`` the attribute ``nodes_modes``. The sets
    of the BRANCH_MEMBER nodes follow each other in ``membership_values``, with a NaN behind each.
    Here, NaN fills the rest of a row, and the rows of other nodes and of leaves.
    """
    members: list[list[float]] = [[]]
    if "membership_values" in node.attributes:
        for value in _numbers(node, "membership_values"):
            if np.isnan(value):
                members.append([])
            else:
                members[-1].append(float(value))
    table = np.full((count, max(map(len, members)) or 1), np.nan)
    for position, values in zip(np.flatnonzero(modes == MEMBER), members, strict=False):
        table[position, : len(values)] = values
    return table
