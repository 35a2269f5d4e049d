"""TfIdfVectorizer of integers: counts each n-gram of the pool in each row."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("TfIdfVectorizer")
def tf_idf(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the number of times that each n-gram occurs in each row of the input [B, n].

    ``starts`` has the positions in the pool at which the n-grams of length 1, 2, ... begin;
    ``indexes`` the result column of each n-gram. The counts of all n-grams are computed first; a
    product with a 0-1 matrix puts them into their columns.
    """
    m = Steps(cx)
    x = m.array(node.inputs[0])
    pool = cx.ints(node, "pool_int64s")
    starts, indexes = cx.ints(node, "ngram_counts"), cx.ints(node, "ngram_indexes")
    if pool is None or starts is None or indexes is None or not indexes:
        raise cx.refuse("its pool has no integers, or ngram_counts or ngram_indexes is missing")
    rows = x if len(x.shape) == 2 else x.reshape(1, *x.shape)
    rows = rows.cast(ir.DataType.INT64)
    batch = m.sizes(rows)[0]
    parts: list[Array] = []
    result_columns: list[int] = []
    gram_count = 0
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        grams = np.asarray(pool[start:end], np.int64).reshape(-1, length)
        if (
            node.attributes.get_int("min_gram_length", 1)
            <= length
            <= node.attributes.get_int("max_gram_length", 1)
        ):
            result_columns += indexes[gram_count : gram_count + len(grams)]
            if len(grams):
                parts.append(_counts(m, rows, grams, node.attributes.get_int("max_skip_count", 0)))
        gram_count += len(grams)
    width = max(indexes) + 1
    table = np.zeros((len(result_columns), width))
    table[np.arange(len(result_columns)), result_columns] = 1
    counts = m.concat(parts, 1) if parts else m.constant(np.zeros((batch, 0)), ir.DataType.FLOAT)
    result = m.dot("bg,gw->bw", counts, m.constant(table, ir.DataType.FLOAT))
    result = _weighted(m, result, node, width)
    m.set_output(node.outputs[0], result if len(x.shape) == 2 else result.reshape(width))


def _counts(m: Steps, rows: Array, grams: np.ndarray, skips: int) -> Array:
    """Return how often each of ``grams`` [G, n] occurs in each row: [B, G] floats.

    Items of an n-gram may have up to ``skips`` items between them, equally many each time.
    """
    batch, size = m.sizes(rows)
    count, length = grams.shape
    total: Array | None = None
    for distance in range(1, 2 + (skips if length > 1 else 0)):
        positions = size - distance * (length - 1)
        if positions < 1:
            continue
        same: Array | None = None
        for item in range(length):
            offset = item * distance
            read = rows.rows(offset, offset + positions, 1).reshape(batch, positions, 1)
            hit = m.op("Equal", read, m.constant(grams[:, item].reshape(1, 1, -1)))
            same = hit if same is None else m.op("And", same, hit)
        assert same is not None
        hits = same.cast(ir.DataType.FLOAT).reduce("ReduceSum", 1)
        total = hits if total is None else total + hits
    return m.constant(np.zeros((batch, count)), ir.DataType.FLOAT) if total is None else total


def _weighted(m: Steps, counts: Array, node: ir.Node, width: int) -> Array:
    """Return the counts as the node's ``mode`` requests them.

    ``TF`` returns counts, ``IDF`` the weight of each n-gram that occurs, ``TFIDF`` the products of
    both.
    """
    mode = node.attributes.get_string("mode", "TF")
    attr = node.attributes.get("weights")
    if mode != "TF":
        if mode == "IDF":
            counts = m.op("Greater", counts, 0.0).cast(ir.DataType.FLOAT)
        weights_given = list(attr.as_floats()) if attr is not None else []
        indexes = m.cx.ints(node, "ngram_indexes") or ()
        weights = np.ones(width)
        for index, weight in zip(indexes, weights_given, strict=False):
            weights[index] = weight
        counts = counts * m.constant(weights, ir.DataType.FLOAT)
    return counts
