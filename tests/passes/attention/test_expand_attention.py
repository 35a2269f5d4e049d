"""``Attention`` is expanded into products and a Softmax for targets without it."""

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_operators, check_refused, check_same_numbers, check_unchanged, run_pass

import smelt
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.attention.expand_attention import expand_attention
from smelt.passes.pipelines import EXPANDED
from smelt.runtime.inputs import random_inputs
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.reference import Reference

WHOLE = "g (float[N,3,5,8] q, float[N,3,7,8] k, float[N,3,7,6] v{m}) => (float[N,3,5,6] y) {{ y = {a} }}"
ROWS = "g (float[N,5,24] q, float[N,7,24] k, float[N,7,18] v{m}) => (float[N,5,18] y) {{ y = {a} }}"
HEADS = "q_num_heads=3, kv_num_heads=3"
CORE = ["Mul", "Transpose", "MatMul", "Softmax", "MatMul"]
GUARD = ["ReduceMax", "Equal", "Where"]


def expanded(before: str, operators: list[str]) -> None:
    check_operators(
        expand_attention, before, operators, modes=("normal",)
    )  # fmt: skip


@pytest.mark.parametrize("scale", ["", "<scale=0.3>"])
def test_expands(scale: str) -> None:
    expanded(WHOLE.format(m="", a=f"Attention{scale}(q, k, v)"), CORE)


def test_scores_are_capped_before_they_are_masked() -> None:
    before = WHOLE.format(m=", float[5,7] m", a="Attention<softcap=2.0>(q, k, v, m)")
    expanded(before, [*CORE[:3], "Div", "Tanh", "Mul", "Add", "Softmax", *GUARD, "MatMul"])


@pytest.mark.parametrize("shape", ["5,7", "1,1,5,7", "N,3,5,7"])
def test_expands_a_bias(shape: str) -> None:
    before = WHOLE.format(m=f", float[{shape}] m", a="Attention(q, k, v, m)")
    expanded(before, [*CORE[:3], "Add", "Softmax", *GUARD, "MatMul"])


MASKS = {
    "one query without keys": ("-inf, -inf, -inf, 0, -inf, 1, 0, 0, -inf", 0, GUARD),
    "among the keys seen": ("-inf, 0, 0, 0, -inf, 1, 0, 0, -inf", 1, GUARD),
    "a key for each query": ("-inf, 0, -inf, 0, -inf, 1, 0, 0, -inf", 0, []),
    "no infinity": ("-9, 0, 0, 0, -1000, 1, 0, 0, 3", 1, []),
    "infinite the other way": ("-1, 0, 0, 0, -inf, 1, 0, 0, 2", 0, []),
}


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "input"])
@pytest.mark.parametrize("name", MASKS)
def test_a_query_that_is_left_no_key_weighs_all_by_zero(name: str, constant: bool) -> None:
    """The specification says so since opset 23; a Softmax alone gives NaN."""
    numbers, causal, guard = MASKS[name]
    mask = np.array([float(number) for number in numbers.split(",")], np.float32).reshape(3, 3)
    model = text.parse(
        "g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, float[3,3] m) => "
        f"(float[1,2,3,4] y) {{ y = Attention<is_causal={causal}>(q, k, v, m) }}",
        23,
    )
    if constant:
        value = model.graph.inputs.pop()
        value.const_value = ir.Tensor(mask, name="m")
        model.graph.register_initializer(value)
    given = random_inputs(model, {}, 0)[:3] + ([] if constant else [mask])
    (expected,) = Reference(model)(*given)
    optimize_model(model, pipeline="expand-attention")
    kinds = [node.op_type for node in model.graph]
    assert "Attention" not in kinds
    assert ("ReduceMax" in kinds) == bool(guard or not constant)
    (found,) = Reference(model)(*given)
    assert not np.isnan(expected).any()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_causal_mask_is_positions_compared() -> None:
    before = WHOLE.format(m="", a="Attention<is_causal=1>(q, k, v)")
    seen = ["Unsqueeze", "GreaterOrEqual", "Where"]
    expanded(before, [*CORE[:3], *seen, *CORE[3:]])
    biased = WHOLE.format(m=", float[5,7] m", a="Attention<is_causal=1>(q, k, v, m)")
    guard = ["Where", *GUARD]
    expanded(biased, [*CORE[:3], "Add", *seen, "Softmax", *guard, "MatMul"])


def test_a_query_whose_scores_are_all_minus_infinity_weighs_later_keys_alike() -> None:
    """ONNX Runtime and JAX hide keys by the lowest number, so the result is not NaN."""
    before = "g (float[1,1,3,1] q, float[1,1,3,1] k, float[1,1,3,2] v) => (float[1,1,3,2] y)"
    source = text.parse(f"{before} {{ y = Attention<is_causal=1>(q, k, v) }}", 23)
    model = source.clone()
    optimize_model(model, pipeline="expand-attention")
    keys = np.array([-np.inf, 1, 2], np.float32).reshape(1, 1, 3, 1)
    values = np.arange(6, dtype=np.float32).reshape(1, 1, 3, 2)
    given = (np.ones_like(keys), keys, values)
    (expected,) = OnnxRuntime(source)(*given)
    (found,) = OnnxRuntime(model)(*given)
    np.testing.assert_allclose(found[0, 0, 0], [3, 4], rtol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("keys", ["S", "T"])
def test_a_causal_mask_follows_sizes_that_are_no_numbers(keys: str) -> None:
    before = WHOLE.format(m="", a="Attention<is_causal=1>(q, k, v)")
    before = before.replace(",5,", ",S,").replace(",7,", f",{keys},")
    positions = ["Shape", "Squeeze", "Range"]
    seen = [*positions, "Unsqueeze", *positions, "GreaterOrEqual", "Where"]
    expanded(before, [*CORE[:3], *seen, *CORE[3:]])


def test_layers_share_one_causal_mask() -> None:
    body = "a = Attention<is_causal=1>(q, k, v) b = Neg(a) y = Attention<is_causal=1>(b, k, a)"
    before = "g (float[N,3,S,8] q, float[N,3,S,8] k, float[N,3,S,8] v) => (float[N,3,S,8] y)"
    model = smelt.optimize(text.parse(f"{before} {{ {body} }}", 23), pipeline=EXPANDED)
    kinds = [node.op_type for node in model.graph]
    assert (kinds.count("GreaterOrEqual"), kinds.count("Where")) == (1, 2)


def test_heads_are_split_off_and_merged() -> None:
    apart = ["Reshape", "Transpose"] * 3
    before = ROWS.format(m="", a=f"Attention<{HEADS}>(q, k, v)")
    expanded(before, [*apart, *CORE, "Transpose", "Reshape"])


SHARED = {
    "apart": "g (float[N,4,5,8] q, float[N,2,S,8] k, float[N,2,S,6] v) => (float[N,4,5,6] y) "
    "{ y = Attention(q, k, v) }",
    "in rows": "g (float[N,S,32] q, float[N,S,16] k, float[N,S,12] v) => (float[N,S,24] y) "
    "{ y = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1>(q, k, v) }",
    "by all queries": "g (float[N,4,5,8] q, float[N,1,7,8] k, float[N,1,7,6] v) => "
    "(float[N,4,5,6] y) { y = Attention<is_causal=1>(q, k, v) }",
}


@pytest.mark.parametrize("before", SHARED.values(), ids=SHARED)
def test_queries_that_share_keys_read_copies(before: str) -> None:
    source, model = text.parse(before, 23), text.parse(before, 23)
    run_pass(expand_attention, model)
    kinds = [node.op_type for node in model.graph]
    assert kinds.count("Expand") == 2
    assert "Attention" not in kinds
    check_same_numbers(source, model, expand_attention.exactness, modes=("normal",))


PAST = {
    "apart": "g (float[N,4,1,8] q, float[N,2,1,8] k, float[N,2,1,6] v, float[N,2,P,8] pk, "
    "float[N,2,P,6] pv) => (float[N,4,1,6] y, float[N,2,T,8] nk, float[N,2,T,6] nv) "
    "{ y, nk, nv = Attention(q, k, v, , pk, pv) }",
    "in rows, with a mask": "g (float[2,3,32] q, float[2,3,32] k, float[2,3,24] v, float[3,8] m, "
    "float[2,4,5,8] pk, float[2,4,5,6] pv) => (float[2,3,24] y, float[2,4,8,8] nk, "
    "float[2,4,8,6] nv) "
    "{ y, nk, nv = Attention<q_num_heads=4, kv_num_heads=4>(q, k, v, m, pk, pv) }",
}


@pytest.mark.parametrize("before", PAST.values(), ids=PAST)
def test_the_past_goes_before_what_is_new(before: str) -> None:
    source, model = text.parse(before, 23), text.parse(before, 23)
    run_pass(expand_attention, model)
    kinds = [node.op_type for node in model.graph]
    assert kinds.count("Concat") >= 2
    assert "Attention" not in kinds
    check_same_numbers(source, model, expand_attention.exactness, modes=("normal",))


KEPT = {
    "a mask of booleans": WHOLE.format(m=", bool[5,7] m", a="Attention(q, k, v, m)"),
    "scores handed on": (
        "g (float[N,3,5,8] q, float[N,3,7,8] k, float[N,3,7,6] v) "
        "=> (float[N,3,5,6] y, float[N,3,5,7] s) { y, , , s = Attention(q, k, v) }"),
    "a causal mask beside a past": (
        "g (float[N,3,5,8] q, float[N,3,7,8] k, float[N,3,7,6] v, float[N,3,2,8] pk, "
        "float[N,3,2,6] pv) => (float[N,3,5,6] y) "
        "{ y = Attention<is_causal=1>(q, k, v, , pk, pv) }"),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_keeps(before: str) -> None:
    check_unchanged(expand_attention, before)


@pytest.mark.parametrize("mask", ["", ", is_causal=1", ", is_causal=1, softcap=0.5"])
@pytest.mark.parametrize("target", ["host", "c"])
def test_targets_of_small_operators_take_it(target: str, mask: str) -> None:
    model = text.parse(ROWS.format(m="", a=f"Attention<{HEADS}{mask}>(q, k, v)"), 23)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=s).astype(np.float32) for s in ((2, 5, 24), (2, 7, 24), (2, 7, 18))]
    expected = smelt.compile(model, target="onnx").load()(*inputs)
    actual = smelt.compile(model, target=target, dims={"N": 2}).load()(*inputs)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-5)


ASKED = {
    "windows": (25, "", "<left_window_size=2>(q, k, v)"),
    "lengths of keys": (24, ", int64[N] n", "(q, k, v, , , , n)"),
    "a softmax in another type": (23, "", "<softmax_precision=11>(q, k, v)"),
}


@pytest.mark.parametrize(("opset", "more", "call"), ASKED.values(), ids=ASKED.keys())
def test_keeps_what_asks_for_more(opset: int, more: str, call: str) -> None:
    graph = WHOLE.format(m=more, a=f"Attention{call}")
    check_unchanged(expand_attention, graph, opset=opset)
    model = text.parse(graph, opset)
    inputs = [np.minimum(a, 7) for a in map(np.asarray, random_inputs(model, {"N": 2}))]
    expected = Reference(model)(*inputs)
    actual = smelt.compile(model, target="host", dims={"N": 2})(*inputs)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-6)


def test_windows_that_say_nothing_are_none() -> None:
    windows = "left_window_size=-1, right_window_size=-1"
    graph = WHOLE.format(m="", a=f"Attention<{windows}>(q, k, v)")
    model = text.parse(graph, 25)
    inputs = random_inputs(model, {"N": 2})
    artifact = smelt.compile(model, target="host", dims={"N": 2})
    np.testing.assert_allclose(artifact(*inputs)[0], Reference(model)(*inputs)[0], rtol=1e-4)


TOLD = {
    "the size of a head is not known": "g (float[N,5,W] q, float[N,7,W] k, float[N,7,18] v) "
    "=> (float[N,5,18] y) { y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, v) }",
    "the size of a head that queries share is not known": "g (float[N,6,5,8] q, float[N,2,7,8] k, float[N,2,7,W] v) "
    "=> (float[N,6,5,W] y) { y = Attention(q, k, v) }",
    "qk_matmul_output_mode is not 0": WHOLE.format(
        m="", a="Attention<qk_matmul_output_mode=1>(q, k, v)"
    ),
    "the Attention reads past keys or past values, not both": WHOLE.format(
        m=", float[N,3,2,8] pk", a="Attention(q, k, v, , pk)"
    ),
}


@pytest.mark.parametrize("why", TOLD)
def test_kept_attentions_are_reported_with_the_reason(why: str) -> None:
    check_refused(expand_attention, TOLD[why], why)
