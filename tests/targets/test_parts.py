"""A vendor's target runs what it takes, and another one the rest: one artifact, the same numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from typer.testing import CliRunner

import smelt
from smelt.cli.main import app
from smelt.errors import ErrorList, Unsupported, UsageError
from smelt.ir import text
from smelt.ir.build import Builder
from smelt.ir.complex_pairs import mark_pairs
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.operators.declare import Attributes, Operator, Result
from smelt.runtime.interface import interface_of
from smelt.runtime.runner import open_runner
from smelt.targets import registry
from smelt.targets.base import Artifact, Limits, Plan, Target
from smelt.targets.phases import NothingTaken
from smelt.targets.saved import open_saved
from smelt.targets.saved_folder import Saved

DOMAIN = "vendor.parts"


@rule(op("Relu", op("Add", var("a"), var("b"))))
def take_add_relu(m: Match, b: Builder) -> Replacement:
    return b.op("AddRelu", m["a"], m["b"], domain=DOMAIN)


def body(b: Builder, inputs: object, attributes: Attributes) -> tuple[ir.Value, ...]:
    return (b.op("Relu", b.op("Add", *inputs)),)  # type: ignore[misc]


ADD_RELU = Operator(
    domain=DOMAIN,
    name="AddRelu",
    inputs=("a", "b"),
    outputs=("y",),
    infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),  # type: ignore[union-attr]
    reference=lambda inputs, attributes: (np.maximum(inputs[0] + inputs[1], 0),),  # type: ignore[operator]
    body=body,
)


def emit(plan: Plan[None, None]) -> Artifact:
    names = " ".join(node.op_type for node in plan.model.graph)
    runner = lambda: open_runner(plan.model)  # noqa: E731
    return Artifact("vendor", plan.model, {"names.txt": names.encode()}, plan, {}, runner)


def accepts(node: ir.Node) -> bool | str:
    size = node.outputs[0].shape
    if size is not None and np.prod(size.numpy()) > 100:
        return "more than 100 elements"
    return node.op_type != "MatMul" or "no product today"


vendor = Target(
    name="vendor",
    summary="",
    emit=emit,
    operators=(ADD_RELU,),
    select=(take_add_relu,),
    limits=Limits(
        dtypes=frozenset({ir.DataType.FLOAT}),
        dynamic_dims=False,
        operators=frozenset({ADD_RELU.key, ("", "Neg"), ("", "Mul"), ("", "MatMul")}),
    ),
    accepts=accepts,
    fallback="host",
)


def model(body: str, interface: str = "(float[2,3] x) => (float[2,3] y)") -> ir.Model:
    return text.parse(f"g {interface} {{ {body} }}")


MIXED = model("a = Add(x, x) r = Relu(a) t = Tanh(r) n = Neg(t) m = Mul(n, r) y = Exp(m)")
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def parts(artifact: Artifact) -> list[str]:
    return sorted({name.partition("/")[0] for name in artifact.files})


@pytest.mark.parametrize("fallback", ["host", "c", "onnx"])
def test_the_rest_goes_to_the_fallback_in_the_same_artifact(fallback: str) -> None:
    artifact = smelt.compile(MIXED, target=vendor, pipeline="", fallback=fallback)
    assert parts(artifact) == [
        "part0_vendor", f"part1_{fallback}", "part2_vendor", f"part3_{fallback}", "parts.json",
    ]  # fmt: skip
    assert artifact.files["part0_vendor/names.txt"] == b"AddRelu"
    assert artifact.plan.facts == {"nodes on vendor": 3, f"nodes on {fallback}": 2, "parts": 4}
    smelt.verify(MIXED, artifact).check()


def test_a_target_that_takes_all_has_no_parts() -> None:
    artifact = smelt.compile(model("y = Neg(x)"), target=vendor)
    assert parts(artifact) == ["names.txt"]


def test_strict_refuses_with_all_reasons() -> None:
    with pytest.raises(ErrorList) as caught:
        smelt.compile(MIXED, target=vendor, strict=True, pipeline="")
    assert "Tanh" in str(caught.value)
    assert "Exp" in str(caught.value)


def test_unaccepted_operators_are_refused_or_run_on_another_target() -> None:
    product = model(
        "w = Constant<value = float[3,3] {1,2,3,4,5,6,7,8,9}>() m = MatMul(x, w) y = Neg(m)"
    )
    with pytest.raises((Unsupported, ErrorList), match="no product today"):
        smelt.compile(product, target=vendor, strict=True, pipeline="")
    artifact = smelt.compile(product, target=vendor, pipeline="")
    assert parts(artifact) == ["part0_host", "part1_vendor", "parts.json"]
    smelt.verify(product, artifact).check()


def test_a_budget_and_its_own_compound_on_the_fallback() -> None:
    large = model("a = Add(x, x) y = Relu(a)", "(float[20,30] x) => (float[20,30] y)")
    artifact = smelt.compile(large, target=vendor, pipeline="")
    assert parts(artifact) == ["part0_host", "parts.json"]
    smelt.verify(large, artifact).check()


def test_a_symbolic_batch_runs_on_the_fallback() -> None:
    loose = model("a = Neg(x) y = Tanh(a)", "(float[B,3] x) => (float[B,3] y)")
    artifact = smelt.compile(loose, target=vendor)
    assert parts(artifact) == ["part0_host", "parts.json"]
    np.testing.assert_allclose(artifact(X)[0], np.tanh(-X), rtol=1e-6)


@pytest.mark.parametrize("fallback", ["host", "c"])
def test_a_batch_within_bounds_is_taken(fallback: str) -> None:
    bounded = replace(
        vendor, limits=replace(vendor.limits, bounded_dims=True), accepts=None, fallback=fallback
    )
    loose = model(
        "s = Constant<value_ints = [-1]>() t = Tanh(x) f = Reshape(t, s) n = Neg(f) "
        "r = Constant<value_ints = [3,-1]>() g = Reshape(n, r) y = Exp(g)",
        "(float[B,3] x) => (float[3,B] y)",
    )
    artifact = smelt.compile(loose, target=bounded, pipeline="", dims={"B": (1, 8)})
    assert parts(artifact) == [
        f"part0_{fallback}", "part1_vendor", f"part2_{fallback}", "parts.json",
    ]  # fmt: skip
    for batch in (1, 3, 8):
        x = np.linspace(-1, 1, 3 * batch, dtype=np.float32).reshape(batch, 3)
        expected = np.exp(-np.tanh(x)).reshape(3, batch)
        np.testing.assert_allclose(artifact(x)[0], expected, rtol=1e-5)


def test_inputs_and_constants_that_are_returned() -> None:
    odd = model(
        "c = Constant<value = float[2] {1, 2}>() a = Neg(x) y = Tanh(a) z = Mul(a, x)",
        "(float[2,3] x) => (float[2,3] x, float[2] c, float[2,3] z, float[2,3] y, float[2,3] a)",
    )
    artifact = smelt.compile(odd, target=vendor, pipeline="")
    x, c, z, y, a = artifact(X)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(c, [1, 2])
    np.testing.assert_array_equal(z, -X * X)
    np.testing.assert_array_equal(a, -X)
    np.testing.assert_allclose(y, np.tanh(-X), rtol=1e-6)


def test_a_region_that_does_not_pay_stays_on_the_fallback() -> None:
    dear = replace(vendor, cost=lambda nodes: 1.5 - len(nodes))
    artifact = smelt.compile(MIXED, target=dear, pipeline="")
    assert parts(artifact) == ["part0_host", "part1_vendor", "part2_host", "parts.json"]
    smelt.verify(MIXED, artifact).check()


def test_a_fallback_that_cannot_run_the_rest_refuses() -> None:
    with pytest.raises((Unsupported, ErrorList)) as caught:
        smelt.compile(model("a = Neg(x) y = nobody.Nothing(a)"), target=vendor, fallback="c")
    assert "Nothing" in str(caught.value)


def test_an_integer_is_beyond_the_limits_and_runs_elsewhere() -> None:
    ints = model(
        "y = Neg(x) n = Cast<to=1>(y) z = Neg(n)", "(int32[3] x) => (int32[3] y, float[3] z)"
    )
    artifact = smelt.compile(ints, target=vendor, pipeline="")
    assert parts(artifact) == ["part0_host", "part1_vendor", "parts.json"]
    y, z = artifact(np.array([1, -2, 3], np.int32))
    np.testing.assert_array_equal(y, [-1, 2, -3])
    np.testing.assert_array_equal(z, [1, -2, 3])


def test_a_saved_folder_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(folder: Path) -> Saved | None:
        assert (folder / "names.txt").read_text() == "Neg"
        piece = model("y = Neg(x)")
        return Saved("vendor", interface_of(piece), lambda: open_runner(piece))

    target = replace(vendor, open=opened)
    found = lambda name: target if name == "vendor" else registry.find_target(name)  # noqa: E731
    monkeypatch.setattr("smelt.targets.saved.find_target", found)
    simple = model("a = Neg(x) y = Tanh(a)")
    artifact = smelt.compile(simple, target=target, fallback="c", pipeline="")
    artifact.save(tmp_path / "out")
    assert (tmp_path / "out" / "part1_c" / "part1.c").is_file()
    saved = open_saved(tmp_path / "out")
    assert [str(port) for port in saved.interface.inputs] == ["float[2,3]"]
    np.testing.assert_allclose(saved.load()(X)[0], np.tanh(-X), rtol=1e-6)
    (tmp_path / "out" / "parts.json").write_text(
        '{"schema": "smelt.parts/1", "parts": [{"folder": "../x"}]}'
    )
    with pytest.raises(UsageError, match="damaged"):
        open_saved(tmp_path / "out")


def test_a_saved_folder_takes_and_returns_complex_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace(vendor, open=lambda folder: Saved("vendor", interface_of(MIXED), None))
    found = lambda name: target if name == "vendor" else registry.find_target(name)  # noqa: E731
    monkeypatch.setattr("smelt.targets.saved.find_target", found)
    pairs = model("a = Neg(x) y = Tanh(a)", "(float[3,2] x) => (float[3,2] y)")
    mark_pairs(pairs.graph.inputs[0], "complex64")
    smelt.compile(pairs, target=target, fallback="c", pipeline="").save(tmp_path / "out")
    interface = open_saved(tmp_path / "out").interface
    assert [port.complex for port in interface.inputs] == [ir.DataType.COMPLEX64]
    assert [port.complex for port in interface.outputs] == [None]


def test_the_command_line_takes_a_fallback_or_forbids_one(tmp_path: Path) -> None:
    run = lambda *more: CliRunner().invoke(app, ["compile", str(tmp_path / "m.onnx"), *more])  # noqa: E731
    smelt.save(MIXED, tmp_path / "m.onnx")
    both = run("--target", "c", "--fallback", "host", "--strict", "-o", str(tmp_path / "out"))
    assert both.exit_code == 2
    assert "E637" in both.stderr
    alone = run("--target", "c", "--strict", "-o", str(tmp_path / "out"))
    assert alone.exit_code == 0, alone.stderr


def test_an_operator_that_nobody_takes_is_told_with_its_first_operand() -> None:
    alone = replace(vendor, fallback=None)
    with pytest.raises(ErrorList) as caught:
        smelt.compile(model("a = Tanh(x) y = Tanh(a)"), target=alone, pipeline="")
    assert [error.code for error in caught.value.errors] == ["E201"]
    assert caught.value.errors[0].at == ("node '', input 0 float[2,3] and 1 more",)


def test_a_fallback_without_options_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replace(vendor, name="plain", limits=Limits(), accepts=None, fallback=None)
    found = lambda each: plain if each == "plain" else registry.find_target(each)  # noqa: E731
    monkeypatch.setattr("smelt.compiler.find_target", found)
    artifact = smelt.compile(MIXED, target=vendor, fallback="plain", pipeline="")
    assert parts(artifact) == [
        "part0_vendor", "part1_plain", "part2_vendor", "part3_plain", "parts.json",
    ]  # fmt: skip


def test_our_own_target_takes_a_fallback_too() -> None:
    odd = model("a = Tanh(x) y = NonZero(a)", "(float[2,3] x) => (int64[2,N] y)")
    artifact = smelt.compile(odd, target="c", fallback="onnx")
    assert parts(artifact) == ["part0_c", "part1_onnx", "parts.json"]
    np.testing.assert_array_equal(artifact(X)[0], np.nonzero(X))


def test_the_saved_model_carries_the_body_of_a_compound(tmp_path: Path) -> None:
    artifact = smelt.compile(MIXED, target=vendor, pipeline="")
    smelt.save(artifact.model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    np.testing.assert_allclose(session.run(None, {"x": X})[0], artifact(X)[0], rtol=1e-6)


def test_why_nodes_go_to_the_fallback_is_in_the_report() -> None:
    def no_exp(node: ir.Node) -> bool | str:
        return node.op_type != "Exp" or "it has no table for it"

    picky = replace(
        registry.find_target("host"),
        name="picky",
        limits=Limits(operators=frozenset({("", "Neg"), ("", "Exp"), ("", "Abs")})),
        accepts=no_exp,
        fallback="host",
        cost=lambda nodes: 1.0 if any(node.op_type == "Abs" for node in nodes) else 0.0,
    )
    source = (
        "g (float[4] x) => (float[4] y) { a = Neg(x) b = Exp(a) c = Exp(b) d = Tanh(c) y = Abs(d) }"
    )
    artifact = smelt.compile(text.parse(source), target=picky)
    assert [(e["operator"], e["why"], e["count"]) for e in artifact.report["elsewhere"]] == [
        ("Exp", "it has no table for it", 2),
        ("Tanh", "no selection rule and no decomposition produces it", 1),
        ("Abs", "its region costs more than it saves", 1),
    ]


def test_a_target_that_takes_no_node_says_why() -> None:
    with pytest.warns(NothingTaken, match="'vendor' takes no node.*'host' runs all.*Tanh 'Tanh_0'"):
        artifact = smelt.compile(
            text.parse("g (float[4] x) => (float[4] y) { y = Tanh(x) }"), target=vendor
        )
    assert artifact.plan.facts["nodes on vendor"] == 0


def test_no_pass_makes_what_a_target_that_lists_its_kernels_lacks() -> None:
    """Else a product and a sum became a Gemm, which the fallback has, before a rule saw them."""
    dense = model(
        "m = MatMul(x, w) a = Add(m, b) y = Exp(a)",
        "(float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12},"
        " float[4] b = {1,2,3,4}>",
    )
    listed = replace(vendor, kernels=frozenset({"Neg", "Mul", "MatMul"}), accepts=None)
    assert smelt.compile(dense.clone(), target=listed).plan.facts["nodes on vendor"] == 1
    free = replace(vendor, accepts=None)
    assert smelt.compile(dense.clone(), target=free).plan.facts["nodes on host"] == 2
