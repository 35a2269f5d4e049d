"""Operators of ai.onnx.ml on numbers: trees, linear models, and what prepares features for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

ML = "ai.onnx.ml"
INT64 = ir.DataType.INT64
TESTS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "NotEqual", "Member")
"""What a node of a tree asks, by the number of its mode."""


@lowers(f"{ML}::ArrayFeatureExtractor")
def array_feature_extractor(cx: ProgramBuilder, node: ir.Node) -> None:
    """A Gather along the last axis; a vector counts as one row."""
    m = Steps(cx)
    x, places = m.array(node.inputs[0]), m.array(node.inputs[1])
    rows = x if len(x.shape) > 1 else x.reshape(1, *x.shape)
    flat = places.reshape(int(np.prod(m.sizes(places))))
    m.give(node.outputs[0], rows.gather(flat, len(rows.shape) - 1))


@lowers(f"{ML}::Binarizer")
def binarizer(cx: ProgramBuilder, node: ir.Node) -> None:
    """1 above the threshold, else 0."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    above = m.op("Greater", x, node.attributes.get_float("threshold", 0.0))
    m.give(node.outputs[0], above.cast(x.dtype))


@lowers(f"{ML}::Scaler")
def scaler(cx: ProgramBuilder, node: ir.Node) -> None:
    """``(x - offset) * scale``, one number for all features or one for each."""
    m = Steps(cx)
    x = m.array(node.inputs[0]).cast(ir.DataType.FLOAT)
    offset, scale = (
        m.constant(node.attributes.get_floats(name, default), ir.DataType.FLOAT)
        for name, default in (("offset", (0.0,)), ("scale", (1.0,)))
    )
    m.give(node.outputs[0], (x - offset) * scale)


@lowers(f"{ML}::LinearRegressor")
def linear_regressor(cx: ProgramBuilder, node: ir.Node) -> None:
    """``x @ coefficients.T + intercepts`` for each target."""
    m = Steps(cx)
    x, targets = m.array(node.inputs[0]), node.attributes.get_int("targets", 1)
    if node.attributes.get_string("post_transform", "NONE") != "NONE":
        raise cx.refuse("a post_transform of a LinearRegressor")
    if len(x.shape) != 2:
        raise cx.refuse("features that are no matrix")
    weights = np.asarray(node.attributes.get_floats("coefficients", ())).reshape(targets, -1)
    result = m.dot("nf,tf->nt", x.cast(ir.DataType.FLOAT), m.constant(weights, ir.DataType.FLOAT))
    bias = node.attributes.get_floats("intercepts", ())
    if len(bias):
        result = result + m.constant(bias, ir.DataType.FLOAT)
    m.give(node.outputs[0], result)


@lowers(f"{ML}::TreeEnsemble")
def tree_ensemble(cx: ProgramBuilder, node: ir.Node) -> None:
    """All rows go down all trees at once, a level a step; leaves lead to themselves.

    x [N, features] gives [N, targets].
    """
    m = Steps(cx)
    x, told = m.array(node.inputs[0]), node.attributes
    roots = np.asarray(told.get_ints("tree_roots", ()))
    rows = m.sizes(x)[0]
    trees = _Trees(m, node)
    place = m.constant(roots.reshape(1, -1)).expand(rows, len(roots))
    for _ in range(trees.depth(roots)):
        place = trees.descend(x, place)
    leaf = place - trees.count
    weights = m.constant(_numbers(node, "leaf_weights"), x.dtype).gather(leaf)
    targets = m.constant(told.get_ints("leaf_targetids", ())).gather(leaf)
    wanted = told.get_int("n_targets", 1)
    mine = m.op(
        "Equal", targets.reshape(*targets.shape, 1), m.constant(np.arange(wanted).reshape(1, 1, -1))
    )
    shares = weights.reshape(*weights.shape, 1)
    m.give(node.outputs[0], _after(m, _aggregated(m, mine, shares, node, len(roots)), node))


def _aggregated(m: Steps, mine: Array, shares: Array, node: ir.Node, trees: int) -> Array:
    """Average, sum, least or greatest of what the trees say of each target."""
    mode = node.attributes.get_int("aggregate_function", 1)
    if mode in (0, 1):
        total = m.op("Where", mine, shares, 0.0).reduce("ReduceSum", 1)
        return total / trees if mode == 0 else total
    limit = float(np.finfo(shares.dtype.numpy()).max) * (1 if mode == 2 else -1)
    op = "ReduceMin" if mode == 2 else "ReduceMax"
    return m.op("Where", mine, shares, limit).reduce(op, 1)


def _after(m: Steps, result: Array, node: ir.Node) -> Array:
    """The post_transform."""
    mode = node.attributes.get_int("post_transform", 0)
    if mode == 1:
        return m.emit("Softmax", (result,), result.shape, axis=1)
    if mode == 2:
        return m.op("Sigmoid", result)
    if mode != 0:
        raise m.cx.refuse(f"post_transform {mode}")
    return result


def _numbers(node: ir.Node, name: str) -> np.ndarray:
    return np.asarray(node.attributes[name].as_tensor().numpy())


class _Trees:
    """Nodes and leaves in one numbering, leaves behind the ``count`` nodes."""

    def __init__(self, m: Steps, node: ir.Node) -> None:
        self.m = m
        told = node.attributes
        self.features = np.asarray(told.get_ints("nodes_featureids", ()))
        self.count = len(self.features)
        self.leaves = len(told.get_ints("leaf_targetids", ()))
        self.ways = [self._way(node, side) for side in ("true", "false")]
        self.modes = _numbers(node, "nodes_modes").astype(np.int64)
        self.splits = _numbers(node, "nodes_splits")
        self.missing = np.asarray(told.get_ints("nodes_missing_value_tracks_true", ()) or [0])
        self.members = self._members(node)

    def _way(self, node: ir.Node, side: str) -> np.ndarray:
        """Where each node leads, and each leaf to itself."""
        told = node.attributes
        ids = np.asarray(told.get_ints(f"nodes_{side}nodeids", ()))
        is_leaf = np.asarray(told.get_ints(f"nodes_{side}leafs", ()), bool)
        places = np.where(is_leaf, ids + self.count, ids)
        return np.concatenate([places, self.count + np.arange(self.leaves)])

    def _members(self, node: ir.Node) -> np.ndarray:
        """[nodes + leaves, most]: the sets of the nodes that ask for members, filled with NaN."""
        sets: list[list[float]] = [[]]
        if "membership_values" in node.attributes:
            for value in _numbers(node, "membership_values"):
                if np.isnan(value):
                    sets.append([])
                else:
                    sets[-1].append(float(value))
        table = np.full((self.count + self.leaves, max(map(len, sets)) or 1), np.nan)
        for place, values in zip(np.flatnonzero(self.modes == 6), sets, strict=False):
            table[place, : len(values)] = values
        return table

    def depth(self, roots: np.ndarray) -> int:
        """The steps to the lowest leaf; refuses trees that never end."""
        reached, steps = np.unique(roots), 0
        while (reached < self.count).any():
            reached, steps = np.unique([way[reached] for way in self.ways]), steps + 1
            if steps > self.count:
                raise self.m.cx.refuse("a tree leads back to itself")
        return steps

    def descend(self, x: Array, place: Array) -> Array:
        """One level down."""
        m = self.m
        feature = self._at(self.features, place, INT64)
        value = m.emit("GatherElements", (x, feature), feature.shape, axis=1)
        split = self._at(self.splits, place, x.dtype)
        answers = [self._asked(mode, value, split, place) for mode in sorted({*self.modes})]
        yes = answers[0]
        for answer in answers[1:]:
            yes = m.op("Or", yes, answer)
        if self.missing.any():
            kept = self._at(self.missing, place, ir.DataType.BOOL)
            yes = m.op("Or", yes, m.op("And", m.op("IsNaN", value), kept))
        left, right = (m.constant(way).gather(place) for way in self.ways)
        return m.op("Where", yes, left, right)

    def _asked(self, mode: int, value: Array, split: Array, place: Array) -> Array:
        """Whether a node of this mode says yes; no for nodes of others."""
        m = self.m
        if TESTS[mode] == "Member":
            table = m.constant(self.members, value.dtype).gather(place)
            same = m.op("Equal", value.reshape(*value.shape, 1), table)
            answer = same.reduce("ReduceMax", 2)
        elif TESTS[mode] == "NotEqual":
            answer = m.op("Not", m.op("Equal", value, split))
        else:
            answer = m.op(TESTS[mode], value, split)
        if (self.modes == mode).all():
            return answer
        return m.op("And", answer, self._at(self.modes == mode, place, ir.DataType.BOOL))

    def _at(self, table: Sequence[float] | np.ndarray, place: Array, dtype: ir.DataType) -> Array:
        """The entry of each node; leaves have any."""
        filled = np.zeros(self.count + self.leaves)
        filled[: len(table)] = table
        return self.m.constant(filled, dtype).gather(place)
