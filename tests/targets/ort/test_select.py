"""Which forms the target chooses, under which costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from installed import ONNXRUNTIME

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.inputs import random_inputs
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.ort import choices, ort, select
from smelt.targets.ort.choices import (
    ATTENTION,
    CACHED_ATTENTION,
    CAPPED_ATTENTION,
    CHOICES,
    Choice,
)
from smelt.targets.ort.costs import GAIN, Costs, costs_of_runtime, default_costs
from smelt.targets.ort.options import Options

NORM = "g (float[2,64,256] x, float[2,64,256] s, float[256] g, float[256] b) => (float[2,64,256] y)"
CHEAP, DEAR = 0.5, 2.0


def _costs(factor: float) -> Costs:
    """A table under which every form takes ``factor`` of the time of the first."""
    return Costs(
        {},
        {
            choice.name: {
                tuple(cell.values()): {
                    form: 1.0 if place == 0 else factor for place, form in enumerate(choice.forms)
                }
                for cell in choice.cells()
            }
            for choice in CHOICES.values()
        },
    )


def _compiled(graph: str | ir.Model, monkeypatch: Any, factor: float) -> ir.Model:
    monkeypatch.setattr(select, "default_costs", lambda: _costs(factor))
    model = text.parse(graph) if isinstance(graph, str) else graph
    return smelt.compile(model, target=ort).model


def _names(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


@pytest.mark.skipif(ONNXRUNTIME < (1, 30), reason="the fusion is faster before release 1.30")
def test_a_residual_sum_before_a_norm_is_kept_from_being_fused() -> None:
    artifact = smelt.compile(
        text.parse(f"{NORM} {{ r = Add(x, s) y = LayerNormalization(r, g, b) }}"), target=ort
    )
    assert _names(artifact.model) == ["Sum", "LayerNormalization"]
    assert artifact.report["select"]["fired"] == {"residual-layer-norm:Sum": 1}


@pytest.mark.parametrize(("factor", "form"), [(CHEAP, "Sum"), (DEAR, "Add"), (1.0, "Sum")])
def test_a_sum_before_a_norm_is_an_add_where_that_is_cheaper(
    factor: float, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = f"{NORM} {{ r = Sum(x, s) y = LayerNormalization(r, g, b) }}"
    assert _names(_compiled(graph, monkeypatch, factor)) == [form, "LayerNormalization"]


BIASES = {
    "behind the rows": ("float[2,3,8] x, float[8] b", "x, b", True),
    "in front of the rows": ("float[2,3,8] x, float[8] b", "b, x", True),
    "of a vector": ("float[8] x, float[8] b", "x, b", True),
    "one number": ("float[2,3,8] x, float[1] b", "x, b", False),
    "a scalar": ("float[2,3,8] x, float b", "x, b", False),
    "of two dims": ("float[2,3,8] x, float[1,8] b", "x, b", False),
    "of one column": ("float[2,3,1] x, float[8] b", "x, b", False),
}


@pytest.mark.parametrize(("given", "operands", "made"), BIASES.values(), ids=BIASES)
def test_a_bias_has_one_number_per_column(
    given: str, operands: str, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = "[8]" if given.startswith("float[8]") else "[2,3,8]"
    source = text.parse(f"g ({given}) => (float{result} y) {{ a = Add({operands}) y = Gelu(a) }}")
    model = _compiled(source.clone(), monkeypatch, CHEAP)
    assert ("BiasGelu" in _names(model)) is made
    inputs = random_inputs(source, {})
    np.testing.assert_allclose(
        OnnxRuntime(model)(*inputs)[0], OnnxRuntime(source)(*inputs)[0], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    ("runtime", "measured"),
    [("1.24.3", "1.24.4"), ("1.27.9", "1.24.4"), ("1.28.0", "1.28.0"), ("1.29.1", "1.28.0"),
     ("1.30.0", "1.31.1"), ("2.0", "1.31.1"), ("", "1.31.1")],
)  # fmt: skip
def test_the_costs_of_an_older_runtime(runtime: str, measured: str) -> None:
    assert costs_of_runtime(runtime).about["runtime"] == measured


KEPT = {
    "the sum is read": "r = Add(x, s) n = LayerNormalization(r, g, b) y = Mul(n, r)",
    "the bias broadcasts": "r = Add(x, g) y = LayerNormalization(r, g, b)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_adds_that_the_runtime_does_not_fuse_stay(body: str) -> None:
    artifact = smelt.compile(text.parse(f"{NORM} {{ {body} }}"), target=ort)
    assert "Sum" not in _names(artifact.model)


def test_other_element_types_stay_for_the_costs_are_of_float32() -> None:
    graph = f"{NORM} {{ r = Add(x, s) y = LayerNormalization(r, g, b) }}".replace(
        "float[", "double["
    )
    artifact = smelt.compile(text.parse(graph), target=ort)
    assert "Sum" not in _names(artifact.model)
    (miss,) = artifact.report["select"]["near_misses"]
    assert miss["reason"] == "an operand is not float32, and costs are measured for float32 only"


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
def test_each_form_is_made_where_it_is_cheap_and_computes_the_same(
    choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = {axis: values[min(1, len(values) - 1)] for axis, values in choice.grid.items()}
    usual, form = choice.forms
    source = choice.model(usual, cell)
    made = _compiled(source, monkeypatch, CHEAP)
    assert form in _names(made)
    assert form not in _names(_compiled(source, monkeypatch, DEAR))
    given = random_inputs(source, {})
    for result, expected in zip(
        OnnxRuntime(made)(*given), OnnxRuntime(source)(*given), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def _cheap_at(choice: Choice, chosen: dict[str, int]) -> Costs:
    """A table under which the other form pays at one point of the grid only."""
    usual, form = choice.forms
    return Costs(
        {},
        {
            choice.name: {
                tuple(cell.values()): {usual: 1.0, form: CHEAP if cell == chosen else DEAR}
                for cell in choice.cells()
            }
        },
    )


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
def test_a_form_is_chosen_by_the_sizes_of_the_model(
    choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, form = choice.forms
    chosen = {axis: values[len(values) // 2] for axis, values in choice.grid.items()}
    monkeypatch.setattr(select, "default_costs", lambda: _cheap_at(choice, chosen))
    assert form in _names(smelt.compile(choice.model(usual, chosen), target=ort).model)
    for axis, values in choice.grid.items():
        for other in {values[0], values[-1]} - {chosen[axis]}:
            source = choice.model(usual, {**chosen, axis: other})
            assert form not in _names(smelt.compile(source, target=ort).model), (axis, other)


@pytest.mark.parametrize("choice", [ATTENTION, CACHED_ATTENTION, CAPPED_ATTENTION])
def test_heads_of_several_sequences_count_together(
    choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three sequences of 4 heads have 12 heads."""
    usual, form = choice.forms
    cell = {axis: values[0] for axis, values in choice.grid.items()}
    several = replace(choice, interface=choice.interface.replace("float[1,", "float[3,"))
    for heads, made in ((12, True), (4, False)):
        chosen = {**cell, "heads": heads}
        monkeypatch.setattr(select, "default_costs", lambda at=chosen: _cheap_at(choice, at))
        model = smelt.compile(several.model(usual, {**cell, "heads": 4}), target=ort).model
        assert (form in _names(model)) is made


HEADS = "q_num_heads = 4, kv_num_heads = 4"
SIGNATURE = "g (float[2,8,32] q, float[2,8,32] k, float[2,8,32] v{more}) => (float[2,8,32] y)"
ATTENTIONS = {
    "causal": ("", f"y = Attention<{HEADS}, is_causal = 1>(q, k, v)"),
    "capped": ("", f"y = Attention<{HEADS}, softcap = 3.0>(q, k, v)"),
    "a mask of booleans": (", bool[2,1,8,8] m", f"y = Attention<{HEADS}>(q, k, v, m)"),
    "a mask of two dims": (", float[8,8] m", f"y = Attention<{HEADS}>(q, k, v, m)"),
}


@pytest.mark.parametrize(("more", "body"), ATTENTIONS.values(), ids=ATTENTIONS.keys())
def test_an_attention_that_means_more_stays(
    more: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = f"{SIGNATURE.format(more=more)} {{ {body} }}"
    assert "MultiHeadAttention" not in _names(_compiled(graph, monkeypatch, CHEAP))


def test_a_bias_of_four_dims_is_taken_along(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = SIGNATURE.format(more=", float[2,1,8,8] m")
    source = text.parse(f"{graph} {{ y = Attention<{HEADS}, scale = 0.3>(q, k, v, m) }}")
    made = _compiled(source, monkeypatch, CHEAP)
    assert _names(made) == ["MultiHeadAttention"]
    given = random_inputs(source, {})
    (result,), (expected,) = OnnxRuntime(made)(*given), OnnxRuntime(source)(*given)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


CAPPED = (
    "g (float[{b},{t},64] q, float[{b},{s},32] k, float[{b},{s},32] v) => (float[{b},{t},64] y)"
)


def test_a_capped_attention_with_shared_heads_is_spelled_where_it_has_many_scores() -> None:
    said = (
        "Attention<q_num_heads = 4, kv_num_heads = 2, softcap = 30.0, is_causal = 1, scale = 0.2>"
    )
    for b, t, s, spelled in ((2, 128, 128, True), ("B", 128, "S", True), (1, 1, "S", False)):
        head = CAPPED.format(b=b, t=t, s=s)
        source = text.parse(f"{head} {{ y = {said}(q, k, v) }}")
        made = smelt.compile(source, target=ort).model
        assert ("Tanh" in _names(made)) == spelled
        given = random_inputs(source, {"B": 1, "S": 7})
        (result,), (expected,) = OnnxRuntime(made)(*given), OnnxRuntime(source)(*given)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_attention_without_a_cap_warns_of_no_rule(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Exported models without a cap told their users of a rule that "never fired"."""
    graph = f"{SIGNATURE.format(more='')} {{ y = Attention<{HEADS}, scale = 0.3>(q, k, v) }}"
    assert _names(_compiled(graph, monkeypatch, CHEAP)) == ["MultiHeadAttention"]
    assert not [str(each.message) for each in recwarn if "never fired" in str(each.message)]


def test_one_without_a_cap_is_no_near_miss() -> None:
    head = CAPPED.format(b=2, t=128, s=128)
    source = text.parse(f"{head} {{ y = Attention<q_num_heads = 4, kv_num_heads = 2>(q, k, v) }}")
    misses = smelt.compile(source, target=ort).report["select"]["near_misses"]
    assert not [miss for miss in misses if miss["rule"].startswith("capped")]


CHANNELS = "g (float[N,2,H,W] x) => (float[N,2,H,W] y) <float[2,1,1] s = {2, -3}, float o = {1}>"


@pytest.mark.parametrize(
    ("body", "made"),
    {
        "each channel": ("p = Mul(s, x) y = Sub(p, s)", ["BatchNormalization"]),
        "an offset of one number": ("p = Mul(s, x) y = Add(p, o)", ["Mul", "Add"]),
        "a scale of one number": ("p = Mul(x, o) y = Add(s, p)", ["Add"]),
        "the product is read": ("p = Mul(x, s) q = Add(p, s) y = Mul(p, q)", ["Mul", "Add", "Mul"]),
    }.values(),
)
def test_a_scale_and_an_offset_for_each_channel_are_one_normalization(
    body: str, made: list[str]
) -> None:
    source = text.parse(f"{CHANNELS} {{ {body} }}")
    artifact = smelt.compile(source, target=ort)
    assert _names(artifact.model) == made
    assert not [v for v in artifact.model.graph.initializers.values() if not v.uses()]
    (x,) = random_inputs(source, {"N": 3, "H": 4, "W": 1})
    x.flat[:3] = np.nan, np.inf, -0.0
    np.testing.assert_array_equal(artifact(x)[0], OnnxRuntime(source)(x)[0])


def test_choices_can_be_kept() -> None:
    graph = f"{NORM} {{ r = Add(x, s) y = LayerNormalization(r, g, b) }}"
    for keep in ("all", "silu, residual-layer-norm"):
        artifact = smelt.compile(text.parse(graph), target=ort, keep=keep)
        assert "Sum" not in _names(artifact.model)
    with pytest.raises(SmeltError) as caught:
        Options(keep="no-such-choice")
    assert caught.value.code == "E660"


def test_sizes_that_are_not_known_count_for_all_and_may_lose_nowhere() -> None:
    choice = choices.SILU
    cells = {tuple(cell.values()): {"Sigmoid": 1.0, "QuickGelu": 0.5} for cell in choice.cells()}
    unknown = {"rows": None, "width": 256}
    assert Costs({}, {"silu": cells}).ratio(choice, "QuickGelu", unknown) == pytest.approx(0.5)
    cells[1, 256] = {"Sigmoid": 1.0, "QuickGelu": 1.5}
    assert Costs({}, {"silu": cells}).ratio(choice, "QuickGelu", unknown) == pytest.approx(1.5)


def test_costs_are_read_between_points_and_held_beyond_them() -> None:
    choice = choices.SILU
    cells = {
        (rows, width): {"Sigmoid": 1.0, "QuickGelu": 2.0 if rows >= 128 else 0.5}
        for rows, width in (tuple(cell.values()) for cell in choice.cells())
    }
    costs = Costs({}, {"silu": cells})

    def ratio(rows: int) -> float | None:
        return costs.ratio(choice, "QuickGelu", {"rows": rows, "width": 300})

    assert ratio(16) == pytest.approx(0.5)
    assert ratio(100_000) == pytest.approx(2.0)
    assert 0.5 < (ratio(64) or 0) < 2.0
    assert replace(costs, seconds={}).ratio(choice, "QuickGelu", {"rows": 1, "width": 1}) is None


RUNTIMES = ("1.24.4", "1.28.0", "1.31.1")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_table_that_is_shipped_has_every_choice(runtime: str) -> None:
    costs = costs_of_runtime(runtime)
    assert costs.about["runtime"] == runtime
    for choice in CHOICES.values():
        cells = {tuple(cell.values()) for cell in choice.cells()}
        assert set(costs.seconds[choice.name]) == cells
        assert all(set(taken) == set(choice.forms) for taken in costs.seconds[choice.name].values())


@pytest.mark.parametrize(
    ("runtime", "is_cheaper"),
    [
        ("1.24.4", False),
        ("1.27.1", False),
        ("1.29.0", False),
        ("1.30.0", True),
        ("1.32.0", True),
        ("", True),
    ],
)
def test_a_sum_before_a_norm_is_cheaper_from_one_version_on(runtime: str, is_cheaper: bool) -> None:
    """Before 1.30 the kernel that ONNX Runtime makes of an Add and a norm was the faster one."""
    sizes = {"rows": 128, "width": 512}
    ratio = costs_of_runtime(runtime).ratio(choices.RESIDUAL_LAYER_NORM, "Sum", sizes)
    assert ratio is not None
    assert (ratio < GAIN) == is_cheaper


def test_the_table_is_that_of_the_installed_runtime(monkeypatch: Any) -> None:
    monkeypatch.setattr("smelt.targets.ort.costs.version", lambda: "1.28.2")
    assert default_costs().about["runtime"] == "1.28.0"
