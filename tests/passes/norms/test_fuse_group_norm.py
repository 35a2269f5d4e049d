"""The normalization of groups of channels becomes one operator."""

from __future__ import annotations

from collections import Counter

import pytest
from rewrites import check_operators, check_refused, check_unchanged

import smelt
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.norms.fuse_group_norm import fuse_group_norm

GROUPS = (
    "<float eps = {1e-5}, int64[2] axes = {2,3}, int64[4] split = {0,2,2,-1}, int64[4] back = {0,4,3,2}, "
    "int64[3] flat = {0,2,-1}, float[2] one = {1,1}, float[2] zero = {0,0}, float[4,1,1] k = {1,2,3,4}, "
    "float[4,1,1] c = {4,3,2,1}, float[2] uneven = {1,2}>"
)
PYTORCH_GROUPS = "g = Reshape(x, flat) n = InstanceNormalization(g, one, zero) z = Reshape(n, back)"


@pytest.mark.parametrize(
    "normalize",
    ["InstanceNormalization(g, one, zero)", "LayerNormalization<axis=-1>(g, rows)"],
)
def test_groups(normalize: str) -> None:
    constants = GROUPS.replace(">", f", float[12] rows = {{{','.join(['1'] * 12)}}}>")
    check_operators(
        fuse_group_norm,
        f"g (float[B,4,3,2] x) => (float[B,4,3,2] y) {constants} {{ g = Reshape(x, flat)"
        f" n = {normalize} z = Reshape(n, back) a = Mul(z, k) y = Add(a, c) }}",
        ["GroupNormalization"],
        modes=("normal",),
    )


WHOLE = (
    f"g (float[1,4,3,2] x) => (float[1,4,3,2] y) {GROUPS}"
    f"{{ {PYTORCH_GROUPS} a = Mul(z, k) y = Add(a, c) }}"
)


def test_the_default_pipeline_leaves_them_to_runtimes_without_the_operator() -> None:
    """ONNX Runtime runs the function body of GroupNormalization in 1.06 to 1.1 of the time of this
    form."""
    model = text.parse(WHOLE, 23)
    optimize_model(model, verify="final")
    assert Counter(node.op_type for node in model.graph) == {
        "Reshape": 2,
        "InstanceNormalization": 1,
        "Mul": 1,
        "Add": 1,
    }


@pytest.mark.parametrize("target", ["c", "host"])
def test_targets_with_a_kernel_have_it(target: str) -> None:
    artifact = smelt.compile(text.parse(WHOLE, 23), target=target)
    assert [node.op_type for node in artifact.model.graph] == ["GroupNormalization"]


def test_keeps_groups_that_have_scales() -> None:
    body = PYTORCH_GROUPS.replace("one", "uneven")
    check_unchanged(
        fuse_group_norm,
        f"g (float[B,4,3,2] x) => (float[B,4,3,2] z) {GROUPS} {{ {body} }}",
    )


def test_keeps_numbers_of_channels_that_are_not_known() -> None:
    constants = GROUPS.replace("{0,4,3,2}", "{0,-1,3,2}")
    check_refused(
        fuse_group_norm,
        f"g (float[B,C,3,2] x) => (float[B,D,3,2] z) {constants} {{ {PYTORCH_GROUPS} }}",
        "the group count is not proved to divide the number of channels",
    )


def test_keeps_groups_across_samples() -> None:
    body = PYTORCH_GROUPS.replace("flat", "across")
    constants = GROUPS.replace(">", ", int64[3] across = {2,2,-1}>").replace("{0,4,", "{1,4,")
    check_unchanged(
        fuse_group_norm,
        f"g (float[1,4,3,2] x) => (float[1,4,3,2] z) {constants} {{ {body} }}",
    )
