"""``smelt.merge``: one model whose branches compute what two decoders do, with all weights once."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from merging.decoders import WEIGHT, decoders

import smelt
from smelt.errors import SmeltError
from smelt.ir import scope, text
from smelt.merging.merge import Options, merged_decoders
from smelt.merging.verification import verify_branches
from smelt.runtime.runner import open_runner

IDS = np.array([[3, 1, 4, 1], [5, 9, 2, 6]])
BOTH = ("the first", "the second")


def run(runner, **given):
    """Run with inputs by name; an input that is not given has no elements."""
    fed = []
    for port in runner.interface.inputs:
        sizes = [dim if isinstance(dim, int) else 0 for dim in port.shape]
        fed.append(given.get(port.name, np.zeros(sizes, port.dtype.numpy())))
    return dict(zip([port.name for port in runner.interface.outputs], runner(*fed), strict=True))


@pytest.mark.parametrize("cross", [False, True], ids=["decoder", "encoder and decoder"])
def test_each_branch_equals_its_source_at_all_sizes(cross):
    sources = decoders(cross)
    merged, facts = merged_decoders(sources, BOTH, Options(verified=True))
    assert [str(report.worst.error) for report in facts.reports] == ["0.0", "0.0"]
    assert all(report.ok and len(report.trials) > 4 for report in facts.reports)
    onnx.checker.check_model(smelt.to_proto(merged), full_check=True)


@pytest.mark.parametrize("caches", ["empty", "repeated"])
def test_a_sequence_is_decoded_token_by_token_as_at_once(caches):
    first, _ = decoders(cross=True)
    hidden = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
    ones = np.ones_like(IDS)
    runner = open_runner(smelt.merge(*decoders(cross=True), caches=caches))
    whole = run(open_runner(first), ids=IDS, mask=ones, hidden=hidden)
    given = {"hidden": hidden, "use_cache_branch": np.array([False])}
    step = run(runner, ids=IDS[:, :3], mask=ones[:, :3], **given)
    given["use_cache_branch"] = np.array([True])
    given |= {f"past.0.{name}": step[f"present.0.{name}"] for name in ("self", "cross")}
    last = run(runner, ids=IDS[:, 3:], mask=ones, **given)
    np.testing.assert_allclose(last["logits"][:, 0], whole["logits"][:, 3], rtol=1e-5)
    shape = (0, 1, 8) if caches == "empty" else (2, 5, 8)
    assert last["present.0.cross"].shape == shape
    if caches == "repeated":
        np.testing.assert_array_equal(last["present.0.cross"], whole["present.0.cross"])


def test_weights_are_stored_once_whatever_their_names():
    merged = smelt.merge(*decoders())
    assert scope.weight_bytes(merged) - 2 * 2 * 8 == (128 + 64) * 4  # the axes are in both branches
    assert sorted(merged.graph.initializers) == ["table", "w"]


def test_weights_that_differ_in_a_bit_stay_apart():
    first, cached = decoders()
    weight = cached.graph.initializers["k"]
    array = weight.const_value.numpy().copy()
    array[array == 0] = -0.0
    weight.const_value = ir.tensor(array, name="k")
    merged, facts = merged_decoders((first, cached), BOTH, Options(verified=True))
    assert sorted(merged.graph.initializers) == ["k", "table", "w"]
    assert all(report.ok for report in facts.reports)


def test_the_interface_is_that_of_optimum():
    merged = smelt.merge(*decoders(cross=True))
    assert [v.name for v in merged.graph.inputs] == [
        "ids", "mask", "hidden", "past.0.self", "past.0.cross", "use_cache_branch",
    ]  # fmt: skip
    assert [v.name for v in merged.graph.outputs] == ["logits", "present.0.self", "present.0.cross"]
    chosen = merged.graph.inputs[-1]
    assert (chosen.dtype, chosen.shape) == (ir.DataType.BOOL, ir.Shape([1]))
    [node] = merged.graph
    assert node.op_type == "If"


def test_a_name_of_a_dim_means_one_size_in_both_branches():
    merged = smelt.merge(*decoders(cross=True))
    shapes = {
        v.name: [str(d) for d in v.shape.dims]
        for v in (*merged.graph.inputs, *merged.graph.outputs)
    }
    assert shapes["ids"] == ["B", "S"]
    assert shapes["mask"] == ["B", "mask_1"], "S without past, T with past"
    assert shapes["past.0.self"] == ["B", "P", "8"]
    assert shapes["past.0.cross"] == ["B", "F", "8"]
    assert shapes["present.0.self"] == ["B", "mask_1", "8"]
    assert shapes["logits"] == ["B", "S", "8"]
    assert shapes["present.0.cross"][1] not in ("E", "F", "S"), "empty in one branch"


def test_the_lower_opset_is_raised():
    merged, facts = merged_decoders(decoders(opsets=(18, 20)), BOTH, Options(verified=True))
    assert merged.opset_imports[""] == 20
    assert all(report.ok for report in facts.reports)


INNER = """
decoder (float[N,8] x, bool flag{past}) => (float[N,8] y, float[8,8] kept, float[N,8] z)
<float[8,8] w = {{{weight}}}> {{
    y = If(flag) <then_branch = t () => (float[N,8] a) <float[8,8] v = {{{weight}}}> {{ q = MatMul(x, v) a = MatMul(q, w) }},
                  else_branch = e () => (float[N,8] b) {{ b = {neg}(x) }}>
    kept = Identity(w)
    z = Abs(x)
}}
"""


def test_inner_graphs_returned_weights():
    made = []
    for past, neg in (("", "Neg"), (", float[N,8] past", "Abs")):
        model = text.parse(INNER.format(weight=WEIGHT, past=past, neg=neg), 18)
        model.graph.outputs[1] = model.graph.initializers["w"]
        made.append(model)
    merged, facts = merged_decoders(tuple(made), BOTH, Options(verified=True))
    assert all(report.ok for report in facts.reports)
    assert scope.weight_bytes(merged) == 64 * 4
    assert [v.name for v in merged.graph.outputs] == ["y", "w", "z"]


def test_a_wrong_branch_is_found():
    sources = decoders()
    merged = smelt.merge(*decoders())
    [node] = merged.graph
    inner = node.attributes["then_branch"].as_graph()
    add = next(each for each in inner if each.op_type == "Add")
    add.replace_input_with(1, add.inputs[0])
    first, second = verify_branches(
        merged, list(zip(BOTH, sources, strict=True)), "use_cache_branch"
    )
    assert (first.ok, second.ok) == (True, False)


def without_past(model):
    """Let the pasts of a decoder be weights."""
    for past in [value for value in model.graph.inputs if value.name.startswith("past")]:
        model.graph.inputs.remove(past)
        past.const_value = ir.tensor(np.zeros((1, 1, 8), np.float32), name=past.name)
        model.graph.register_initializer(past)


def renamed_input(model):
    model.graph.inputs[0].name = "use_cache_branch"


def returned_input(model):
    model.graph.outputs[0].name = "past.0.self"


def other_type(model):
    model.graph.inputs[1].type = ir.TensorType(ir.DataType.FLOAT)


def other_rank(model):
    model.graph.inputs[1].shape = ir.Shape(["B", "T", 1])


def own_output(model):
    model.graph.outputs[1].name = "present.1.self"


def fixed_output(model):
    model.graph.outputs[2].shape = ir.Shape([2, 5, 8])


def other_domain(model):
    model.opset_imports["com.microsoft"] = 2


WRONG = {
    "the second has no further input": (1, without_past, "E665"),
    "the name of the condition is taken": (0, renamed_input, "E669"),
    "an output of the name of an input": (0, returned_input, "E669"),
    "an input of another type": (1, other_type, "E666"),
    "an input of another rank": (1, other_rank, "E666"),
    "an output that the first lacks": (1, own_output, "E666"),
    "an output that cannot be empty": (0, fixed_output, "E672"),
    "another version of a domain": (1, other_domain, "E667"),
}


@pytest.mark.parametrize("case", WRONG)
def test_models_that_do_not_fit_are_refused(case):
    index, change, code = WRONG[case]
    models = decoders(cross=True)
    for model in models:
        model.opset_imports["com.microsoft"] = 1
    change(models[index])
    with pytest.raises(SmeltError) as refused:
        smelt.merge(*models)
    assert refused.value.code == code
    assert refused.value.fix


def test_swapped_models_are_refused():
    with pytest.raises(SmeltError, match="not a decoder without past") as refused:
        smelt.merge(*reversed(decoders()))
    assert "order" in refused.value.fix


CALLS = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
decoder (float[N] x{past}) => (float[N] y) {{ y = own.f(x) }}
<opset_import: ["" : 18], domain: "own"> f (a) => (b) {{ b = {operator}(a) }}
"""


@pytest.mark.parametrize(("operators", "code"), [(("Neg", "Neg"), ""), (("Neg", "Abs"), "E668")])
def test_functions_are_kept_if_their_bodies_are_equal(operators, code):
    first, second = (
        text.parse(CALLS.format(past=past, operator=operator))
        for past, operator in zip(("", ", float[M] past"), operators, strict=True)
    )
    if code:
        with pytest.raises(SmeltError) as refused:
            smelt.merge(first, second)
        assert refused.value.code == code
    else:
        assert len(smelt.merge(first, second, verify="final").functions) == 1


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("connect", [None, {"logits": "past.0.self"}])
def test_external_data_stays_external(tmp_path, index, connect):
    models = list(decoders())
    models[index] = smelt.save(models[index], tmp_path / "m.onnx", external_data=True)
    merged = smelt.merge(*models, connect=connect)
    path = smelt.save(merged, tmp_path / "merged.onnx")
    assert (tmp_path / "merged.onnx.data").stat().st_size == (128 + 64) * 4
    assert smelt.verify(merged, path, modes=("normal",)).ok
