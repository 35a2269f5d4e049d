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


@lowers(f"{ML}::TreeEnsemble")
def tree_ensemble(cx: ProgramBuilder, node: ir.Node) -> None:
    """x [N, features] gives [N, targets]."""
    m, told = Steps(cx), node.attributes
    x = m.array(node.inputs[0])
    trees = _trees(node)
    targets = np.asarray(told.get_ints("leaf_targetids", ()))
    mine = targets[:, None] == np.arange(told.get_int("n_targets", 1))
    shares = np.where(mine, _numbers(node, "leaf_weights")[:, None], 0)
    mode = MODES[told.get_int("aggregate_function", 1)]
    result = aggregated(m, trees.leaves(m, x), shares, mine, mode, x.dtype)
    transform = told.get_int("post_transform", 0)
    if transform > 2:
        raise cx.refuse(f"post_transform {transform}")
    m.give(node.outputs[0], transformed(m, result, TRANSFORMS[transform]))


def _trees(node: ir.Node) -> Trees:
    """Return the trees in the attributes of ``node``."""
    told = node.attributes
    features = np.asarray(told.get_ints("nodes_featureids", ()))
    leaves = len(told.get_ints("leaf_targetids", ()))
    modes = _numbers(node, "nodes_modes").astype(np.int64)
    missing = np.asarray(told.get_ints("nodes_missing_value_tracks_true", ()) or [0])
    return Trees(
        np.asarray(told.get_ints("tree_roots", ())),
        features,
        _numbers(node, "nodes_splits"),
        modes,
        missing,
        (_way(node, "true", len(features), leaves), _way(node, "false", len(features), leaves)),
        _members(node, modes, len(features) + leaves),
    )


def _numbers(node: ir.Node, name: str) -> np.ndarray:
    return np.asarray(node.attributes[name].as_tensor().numpy())


def _way(node: ir.Node, side: str, count: int, leaves: int) -> np.ndarray:
    """Return the successor of each node on one side; leaves lead to themselves."""
    ids = np.asarray(node.attributes.get_ints(f"nodes_{side}nodeids", ()))
    is_leaf = np.asarray(node.attributes.get_ints(f"nodes_{side}leafs", ()), bool)
    return np.concatenate([np.where(is_leaf, ids + count, ids), count + np.arange(leaves)])


def _members(node: ir.Node, modes: np.ndarray, places: int) -> np.ndarray:
    """Return the member set of each node, padded with NaN: [nodes and leaves, largest set]."""
    sets: list[list[float]] = [[]]
    if "membership_values" in node.attributes:
        for value in _numbers(node, "membership_values"):
            if np.isnan(value):
                sets.append([])
            else:
                sets[-1].append(float(value))
    table = np.full((places, max(map(len, sets)) or 1), np.nan)
    for place, values in zip(np.flatnonzero(modes == MEMBER), sets, strict=False):
        table[place, : len(values)] = values
    return table
