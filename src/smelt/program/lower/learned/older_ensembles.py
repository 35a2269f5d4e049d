"""Tree ensembles before ai.onnx.ml 5, as scikit-learn, XGBoost and LightGBM export them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.learned.scores import (
    FLOAT,
    INT64,
    ML,
    best_labels,
    columns,
    labels_of,
    transformed,
)
from smelt.program.lower.learned.trees import Trees, aggregated
from smelt.program.lower.registry import lowers

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


@lowers(f"{ML}::TreeEnsembleRegressor")
def tree_ensemble_regressor(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the aggregated leaf weights plus the base values: [N, targets] for features [N,
    features]."""
    m, attributes = Steps(cx), node.attributes
    targets = attributes.get_int("n_targets", 1)
    x, ensemble = _rows(m, node), _Ensemble(m, node, "target", targets)
    mode = attributes.get_string("aggregate_function", "SUM") or "SUM"
    if mode in ("MIN", "MAX") and not ensemble.has_weight.all():
        raise cx.refuse(f"smelt does not lower {mode} for trees that lack a weight for a target")
    total = aggregated(m, ensemble.leaf(x), ensemble.weights, ensemble.has_weight, mode, x.dtype)
    base = _numbers(node, "base_values")
    if len(base):
        total = total + m.constant(base, x.dtype)
    transform = attributes.get_string("post_transform", "NONE") or "NONE"
    if targets == 1 and transform != "NONE":
        raise cx.refuse(f"smelt does not lower post_transform {transform} of a single target")
    m.set_output(node.outputs[0], transformed(m, total, transform).cast(FLOAT))


@lowers(f"{ML}::TreeEnsembleClassifier")
def tree_ensemble_classifier(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit labels [N] and scores [N, classes] for features [N, features]."""
    m = Steps(cx)
    labels = labels_of(m, node)
    x, ensemble = _rows(m, node), _Ensemble(m, node, "class", len(labels))
    scores = aggregated(m, ensemble.leaf(x), ensemble.weights, ensemble.has_weight, "SUM", x.dtype)
    base = _numbers(node, "base_values")
    transform = node.attributes.get_string("post_transform", "NONE") or "NONE"
    if len(labels) == 2:
        label, scores = _binary_scores(m, scores, ensemble, labels, base, transform)
    elif len(labels) > 2:
        if len(base) not in (0, len(labels)):
            raise cx.refuse(f"it has {len(base)} base values for {len(labels)} classes")
        if not len(base) and not ensemble.has_weight.all():
            ranked_scores = ensemble.scores_with_weights(m, ensemble.leaf(x), scores)
        else:
            scores = scores + m.constant(base, x.dtype) if len(base) else scores
            ranked_scores = scores
        label, scores = best_labels(m, ranked_scores, labels), transformed(m, scores, transform)
    else:
        raise cx.refuse(f"it has {len(labels)} classes, and needs 2 or more")
    m.set_output(node.outputs[0], label)
    m.set_output(node.outputs[1], scores.cast(FLOAT))


def _binary_scores(
    m: Steps,
    scores: Array,
    ensemble: _Ensemble,
    labels: np.ndarray,
    base: np.ndarray,
    transform: str,
) -> tuple[Array, Array]:
    """Return labels and scores for two classes, whose trees have weights for one class or both.

    Trees with weights for one class give one score, from which the other class's score is derived.
    The rules are those of ONNX Runtime: without negative weights, the score is a probability and
    the limit between the classes is 0.5; else it is a margin and the limit is 0.
    """
    first, second = (
        scores.rows(class_number, class_number + 1, 1).reshape(scores.shape[0])
        for class_number in (0, 1)
    )
    has_weights = [bool(ensemble.has_weight[:, class_number].any()) for class_number in (0, 1)]
    is_base_undefined = len(base) > 1 or (has_weights[1] and len(base) > 0)
    is_weight_missing = all(has_weights) and not ensemble.has_weight.all()
    if is_base_undefined:
        raise m.cx.refuse("it has two classes, and base values whose effect ONNX does not define")
    if is_weight_missing:
        raise m.cx.refuse("it has two classes, and leaves that lack the weight of one of them")
    if has_weights[1]:
        is_second = m.op("Greater", second, 0.5 if _has_no_negative_weight(ensemble) else 0.0)
        label_values = labels
        if has_weights[0]:
            is_second, label_values = m.op("Greater", second, 0.0), np.array([0, 1])
        label = m.constant(label_values).gather(is_second.cast(INT64))
        return label, transformed(m, columns(m, first, second), transform)
    score = first + m.constant(base, scores.dtype) if len(base) else first
    if transform == "PROBIT":
        raise m.cx.refuse("smelt does not lower post_transform PROBIT of a single score")
    is_second = m.op("Greater", score, 0.5 if _has_no_negative_weight(ensemble) else 0.0)
    label = m.constant(labels).gather(is_second.cast(INT64))
    if _has_no_negative_weight(ensemble):
        return label, columns(m, -score + 1.0, score)
    both = columns(m, -score, score)
    return label, m.op("Sigmoid", both) if transform == "LOGISTIC" else both


def _has_no_negative_weight(ensemble: _Ensemble) -> bool:
    """True if no leaf weight is negative; ONNX Runtime then takes scores for probabilities."""
    return bool((ensemble.weights >= 0).all())


def _rows(m: Steps, node: ir.Node) -> Array:
    """Return the features as floats; doubles stay doubles, because the model compares doubles."""
    x = m.array(node.inputs[0])
    if len(x.shape) != 2:
        raise m.cx.refuse("its features are not a matrix")
    return x if x.dtype == ir.DataType.DOUBLE else x.cast(FLOAT)


def _numbers(node: ir.Node, name: str) -> np.ndarray:
    """Return an attribute of floats, or the tensor attribute that replaces it."""
    tensor = node.attributes.get(f"{name}_as_tensor")
    if tensor is not None:
        return np.asarray(tensor.as_tensor().numpy())
    return np.asarray(node.attributes.get_floats(name, ()), np.float32)


class _Ensemble:
    """The trees of a node, and the weights of their leaves per target or class.

    ``weights`` are [leaves, targets]; ``has_weight`` is True where a leaf has one.
    """

    def __init__(self, m: Steps, node: ir.Node, kind: str, targets: int) -> None:
        """Read the trees and the leaf weights of ``node``; refuses inconsistent attributes."""
        attributes = node.attributes
        self.modes = list(attributes.get_strings("nodes_modes", ()))
        tree_and_node_ids = zip(
            attributes.get_ints("nodes_treeids", ()),
            attributes.get_ints("nodes_nodeids", ()),
            strict=True,
        )
        numbers = {ids: number for number, ids in enumerate(tree_and_node_ids)}
        is_leaf = np.array([mode == "LEAF" for mode in self.modes])
        leaf_count = int(is_leaf.sum())
        # a table has the inner nodes of all trees first, then the leaves, each in their order
        rank_among_kind = np.where(is_leaf, np.cumsum(is_leaf) - 1, np.cumsum(~is_leaf) - 1)
        self._position = np.where(
            is_leaf, rank_among_kind + (len(rank_among_kind) - leaf_count), rank_among_kind
        )
        self.trees = self._read(m, node, numbers, is_leaf)
        self.weights = np.zeros((leaf_count, targets))
        self.has_weight = np.zeros((leaf_count, targets), bool)
        weights = _numbers(node, f"{kind}_weights")
        indices = (
            attributes.get_ints(f"{kind}_{name}", ()) for name in ("treeids", "nodeids", "ids")
        )
        for tree, node_id, target, weight in zip(*indices, weights, strict=True):
            leaf = rank_among_kind[numbers[tree, node_id]]
            if not is_leaf[numbers[tree, node_id]] or not 0 <= target < targets:
                raise m.cx.refuse(
                    f"node {node_id} of tree {tree} has a weight for {kind} {target},"
                    f" but it is no leaf, or the {kind} does not exist"
                )
            self.weights[leaf, target] += weight
            self.has_weight[leaf, target] = True

    def _read(
        self, m: Steps, node: ir.Node, numbers: dict[tuple[int, int], int], is_leaf: np.ndarray
    ) -> Trees:
        """Return the trees of ``node``; ``numbers`` maps (tree, node id) to the node's position."""
        attributes, is_inner = node.attributes, ~is_leaf
        trees = np.asarray(attributes.get_ints("nodes_treeids", ()))
        successors, children = [], set[int]()
        for side in ("true", "false"):
            ids = attributes.get_ints(f"nodes_{side}nodeids", ())
            pairs = list(
                zip(trees[is_inner].tolist(), np.asarray(ids)[is_inner].tolist(), strict=True)
            )
            if not all(pair in numbers for pair in pairs):
                raise m.cx.refuse("a node of a tree has a successor that is not in its tree")
            targets = np.array([numbers[pair] for pair in pairs], np.int64)
            children |= set(targets.tolist())
            successors.append(
                np.concatenate([self._position[targets], np.sort(self._position[is_leaf])])
            )
        roots = [number for number in range(len(trees)) if number not in children]
        if len(roots) != len(set(trees.tolist())):
            raise m.cx.refuse("a tree has no root, or several")
        unknown = {mode for mode in self.modes if mode not in MODES} - {"LEAF"}
        if unknown:
            raise m.cx.refuse(
                f"its nodes_modes contain {sorted(unknown)}, which ONNX does not define"
            )
        missing = np.asarray(
            attributes.get_ints("nodes_missing_value_tracks_true", ()) or 0 * trees
        )
        return Trees(
            self._position[roots],
            np.asarray(attributes.get_ints("nodes_featureids", ()))[is_inner],
            _numbers(node, "nodes_values")[is_inner],
            np.array([MODES.index(mode) for mode in self.modes if mode != "LEAF"], np.int64),
            missing[is_inner],
            (successors[0], successors[1]),
        )

    def leaf(self, x: Array) -> Array:
        """Return the leaf of each tree for each row as [N, trees]."""
        return self.trees.leaves(x.m, x)

    def scores_with_weights(self, m: Steps, leaf: Array, scores: Array) -> Array:
        """Return ``scores`` with the lowest float for classes without a weight in any reached
        leaf."""
        has_weight = (
            m.constant(self.has_weight, ir.DataType.BOOL).gather(leaf).reduce("ReduceMax", 1)
        )
        lowest = float(np.finfo(scores.dtype.numpy()).min)
        return m.op("Where", has_weight, scores, lowest)
