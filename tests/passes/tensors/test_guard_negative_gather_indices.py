"""Indices that count from the end become nonnegative."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.ir import text
from smelt.passes.tensors.guard_negative_gather_indices import guard_negative_gather_indices

HEAD = "g (float[N,4] x, {i} i) => (float{y} y)"
GUARDED = {
    "a known size": (
        HEAD.format(i="int64[3]", y="[N,3]") + " {{ {} y = Gather<axis=1>(x, {}) }}",
        "n = Constant<value_int=4>()",
        "int64",
        [-4, 3, -1],
    ),
    "an unknown size": (
        HEAD.format(i="int64", y="[4]") + " {{ {} y = Gather(x, {}) }}",
        "s = Shape(x) a = Constant<value_int=0>() n = Gather(s, a)",
        "int64",
        -1,
    ),
    "32 bits": (
        HEAD.format(i="int32[2]", y="[2,4]") + " {{ {} y = Gather(x, {}) }}",
        "s = Shape(x) a = Constant<value_int=0>() c = Gather(s, a) n = Cast<to=6>(c)",
        "int32",
        [-1, 0],
    ),
    "an axis from the end": (
        HEAD.format(i="int64[N,2]", y="[N,2]") + " {{ {} y = GatherElements<axis=-1>(x, {}) }}",
        "n = Constant<value_int=4>()",
        "int64",
        [[-4, 3]],
    ),
    "places in a matrix": (
        HEAD.format(i="int64[3,2]", y="[3]") + " {{ {} y = GatherND(x, {}) }}",
        "s = Shape(x) a = Constant<value_ints=[0]>() c = Constant<value_ints=[2]>() n = Slice(s, a, c)",
        "int64",
        [[-1, 3], [0, -4], [0, -1]],
    ),
    "places in rows of a batch": (
        HEAD.format(i="int64[N,1]", y="[N]") + " {{ {} y = GatherND<batch_dims=1>(x, {}) }}",
        "n = Constant<value_ints=[4]>()",
        "int64",
        [[-4]],
    ),
}


@pytest.mark.parametrize(
    ("graph", "count", "dtype", "indices"), GUARDED.values(), ids=GUARDED.keys()
)
def test_guards(graph: str, count: str, dtype: str, indices: object) -> None:
    guard = (
        f"{count} z = Constant<value = {dtype} v {{0}}>() "
        "b = Less(i, z) p = Add(i, n) g = Where(b, p, i)"
    )
    before, after = graph.format("", "i"), graph.format(guard, "g")
    check_rewrite(guard_negative_gather_indices, before, after)
    given = np.asarray(indices, dtype)
    source, model = text.parse(before), text.parse(before)
    run_pass(guard_negative_gather_indices, model)
    x = np.arange(4, dtype=np.float32).reshape(1, 4)
    check_same_numbers(source, model, guard_negative_gather_indices.exactness, {"x": x, "i": given})


def test_constants_are_changed_themselves() -> None:
    check_rewrite(
        guard_negative_gather_indices,
        "g (float[N,4] x) => (float[N,3] y) <int64[3] i = {-4,3,-1}> { y = Gather<axis=1>(x, i) }",
        "g (float[N,4] x) => (float[N,3] y) <int64[3] i = {0,3,3}> { y = Gather<axis=1>(x, i) }",
    )
    check_rewrite(
        guard_negative_gather_indices,
        "g (float[3,4] x) => (float[2] y) <int64[2,2] i = {-1,-1,0,-4}> { y = GatherND(x, i) }",
        "g (float[3,4] x) => (float[2] y) <int64[2,2] i = {2,3,0,0}> { y = GatherND(x, i) }",
    )


def test_a_shared_constant_keeps_its_value_elsewhere() -> None:
    head = "g (float[N,4] x) => (float[N] y, int64 z)"
    check_rewrite(
        guard_negative_gather_indices,
        f"{head} <int64 i = {{-1}}> {{ y = Gather<axis=1>(x, i) z = Neg(i) }}",
        f"{head} <int64 i = {{-1}}, int64 j = {{3}}> {{ y = Gather<axis=1>(x, j) z = Neg(i) }}",
    )


KEPT = {
    "constants that do not count from the end": "g (float[N,4] x) => (float[N,2] y) "
    "<int64[2] i = {0,3}> { y = Gather<axis=1>(x, i) }",
    "ArgMax": "g (float[N,4] x) => (float[P,Q,R] y) { i = ArgMax<axis=1>(x) y = Gather(x, i) }",
    "NonZero": "g (float[N,4] x) => (float[2,P,4] y) { i = NonZero(x) y = Gather(x, i) }",
    "Mod": "g (float[3,4] x, int64[N] k) => (float[N,4] y) <int64 n = {3}> "
    "{ i = Mod(k, n) y = Gather(x, i) }",
    "a place of unknown length": "g (float[N,4] x, int64[3,K] i) => (y) { y = GatherND(x, i) }",
    "an unknown rank": "g (float x0, int64[r] s, int64[2] i) => (y) "
    "{ x = Expand(x0, s) y = Gather(x, i) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(guard_negative_gather_indices, graph)


@pytest.mark.parametrize("case", GUARDED.values(), ids=GUARDED.keys())
def test_a_second_time_changes_nothing(case: tuple[str, str, str, object]) -> None:
    model = text.parse(case[0].format("", "i"))
    assert run_pass(guard_negative_gather_indices, model).rewrites == 1
    assert run_pass(guard_negative_gather_indices, model).rewrites == 0


def test_a_guard_with_a_wrong_size_is_guarded_again() -> None:
    model = text.parse(
        "g (float[N,4] x, int64 i) => (float[N] y) <int64 zero = {0}, int64 n = {3}> "
        "{ b = Less(i, zero) p = Add(i, n) g = Where(b, p, i) y = Gather<axis=1>(x, g) }"
    )
    assert run_pass(guard_negative_gather_indices, model).rewrites == 1


def test_in_a_subgraph() -> None:
    source = (
        "g (float[3,4] x, int64[2] i, bool c) => (float[2,4] y) { y = If<then_branch = "
        "h () => (float[2,4] r) { r = Gather(x, i) }, else_branch = "
        "k () => (float[2,4] s) { s = Gather(x, i) }>(c) }"
    )
    done = optimize(text.parse(source), pipeline="guard-negative-gather-indices")
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "i": np.array([-3, 2])}
    for branch in (False, True):
        check_same_numbers(
            text.parse(source),
            done,
            guard_negative_gather_indices.exactness,
            {**feeds, "c": np.array(branch)},
        )
    branches = next(node for node in done.graph if node.op_type == "If").attributes
    assert all("Where" in [n.op_type for n in a.as_graph()] for a in branches.values())
