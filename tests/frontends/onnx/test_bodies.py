"""A saved model has the body of each operator beyond ONNX, so any runtime loads it.

Bodies are in line; with ``functions=True`` they are model-local functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import smelt
from smelt import operators
from smelt.errors import ErrorList, InvalidModel, UsageError
from smelt.ir import text
from smelt.operators import registry
from smelt.operators.declare import Operator

X = np.linspace(0.2, 2.5, 6, dtype=np.float32).reshape(2, 3)


def run(source: Path | onnx.ModelProto, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return ONNX Runtime's results for a file that onnx.checker accepts."""
    data = str(source) if isinstance(source, Path) else source.SerializeToString()
    onnx.checker.check_model(data, full_check=True)
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def reference(name: str, *arrays: np.ndarray, domain: str = "smelt") -> np.ndarray:
    operator = operators.find(domain, name)
    assert operator is not None
    (result,) = operator.reference(arrays, {})
    return result


MODELS: Mapping[str, str] = {
    "in the graph": "g (float[2,3] x) => (float[2,3] y) { y = smelt.Digamma(x) }",
    "of unknown rank": """g (float[2,3] x, int64[n] s) => (float[2,3] y) <float[] r> {
        r = Reshape(x, s)
        d = smelt.Digamma(r)
        y = Identity(d)
    }""",
    "in a branch": """g (float[2,3] x, bool c) => (float[2,3] y) {
        y = If (c) <then_branch = t () => (float[2,3] a) { a = smelt.Digamma(x) },
                    else_branch = e () => (float[2,3] b) { b = Neg(x) }>
    }""",
}


@pytest.mark.parametrize("source", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("opset", "functions"), [(13, False), (18, False), (23, False), (13, True), (23, True)]
)
def test_an_operator_brings_its_body(
    source: str, opset: int, functions: bool, tmp_path: Path
) -> None:
    head = f'<ir_version: 7, opset_import: ["" : {opset}, "smelt" : 1]>'
    model = text.parse(f"{head} {source}")
    given = {"x": X, "c": np.array(True), "s": np.array([2, 3])}
    arrays = [given[str(value.name)] for value in model.graph.inputs]
    path = smelt.save(model, tmp_path / "m.onnx", functions=functions)
    (result,) = run(path, *arrays)
    np.testing.assert_allclose(result, reference("Digamma", X), rtol=1e-5)
    proto = smelt.to_proto(model, functions=functions)
    assert proto == onnx.load(path)
    assert [function.domain for function in proto.functions] == ["smelt"] * functions
    assert ("smelt" in {item.domain for item in proto.opset_import}) == functions
    assert proto.ir_version == (8 if functions else 7)


@pytest.mark.parametrize("source", MODELS.values(), ids=MODELS)
def test_a_loaded_model_has_the_operator_again(source: str, tmp_path: Path) -> None:
    model = smelt.load(smelt.to_proto(text.parse(source), functions=True))
    again = smelt.load(smelt.save(model, tmp_path / "m.onnx", functions=True))
    assert text.canonical(again) == text.canonical(model)
    assert "Digamma" in text.canonical(again)
    assert not again.functions


FUNCTION = """
<ir_version: 10, opset_import: ["" : 23, "mine" : 1]>
g (float[2,3] x, double[4] z) => (float[2,3] y, double[4] w) { y = mine.F(x)  w = mine.F(z) }
<domain: "mine", opset_import: ["" : 23, "smelt" : 1]>
F (a) => (c) { b = smelt.Digamma(a)  c = Neg(b) }
"""


def test_a_function_that_is_called_with_two_types(tmp_path: Path) -> None:
    model = smelt.load(smelt.to_proto(text.parse(FUNCTION), keep_bare=True), inline=False)
    z = np.linspace(1, 2, 4)
    y, w = run(smelt.save(model, tmp_path / "m.onnx"), X, z)
    np.testing.assert_allclose(y, -reference("Digamma", X), rtol=1e-5)
    np.testing.assert_allclose(w, -reference("Digamma", z), rtol=1e-12)


def test_functions_that_a_model_has_are_written_again() -> None:
    model = text.parse(MODELS["in the graph"])
    proto = smelt.to_proto(model, functions=True)
    assert [function.name for function in smelt.to_proto(proto).functions] == ["Digamma"]


def test_a_function_of_a_jax_function_stays_one(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")

    @smelt.function
    def inner(x: Any) -> Any:
        return jax.scipy.special.digamma(x)

    model = smelt.trace(lambda x: inner(x) + inner(x + 1), "f32[2,3]")
    path = smelt.save(model, tmp_path / "m.onnx")
    (result,) = run(path, X)
    np.testing.assert_allclose(
        result, reference("Digamma", X) + reference("Digamma", X + 1), rtol=1e-5, atol=1e-6
    )
    assert [function.name for function in onnx.load(path).functions] == ["inner"]


CONV_RELU = """
<ir_version: 10, opset_import: ["" : %d]>
g (float[1,2,5,5] x) => (float[1,3,5,5] y)
<float[3,2,3,3] w = {%s}>
{ c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)  y = Relu(c) }
"""


def conv_relu(opset: int) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    numbers = ", ".join(f"{number:.4f}" for number in rng.uniform(-1, 1, 54))
    return onnx.parser.parse_model(CONV_RELU % (opset, numbers))


@pytest.mark.parametrize("target", ["c", "host", "onnx"])
@pytest.mark.parametrize("opset", [13, 18, 23])
def test_the_model_of_an_artifact_runs_anywhere(target: str, opset: int, tmp_path: Path) -> None:
    source = conv_relu(opset)
    image = np.random.default_rng(1).standard_normal((1, 2, 5, 5)).astype(np.float32)
    artifact = smelt.compile(source, target=target)
    if target == "c":
        assert [node.op_type for node in artifact.model.graph] == ["ConvRelu"]
    saved = run(smelt.save(artifact.model, tmp_path / "m.onnx"), image)
    np.testing.assert_allclose(saved[0], run(source, image)[0], rtol=1e-4, atol=1e-5)
    optimized = run(smelt.optimize(smelt.to_proto(artifact.model)), image)
    np.testing.assert_allclose(optimized[0], saved[0], rtol=1e-4, atol=1e-5)


BARE = {
    "no body": (
        "g (float[3,3] a) => (lu) { lu = smelt.ValidateNonsingular(a) }",
        "ONNX cannot express it",
    ),
    "a later version of smelt": (
        "g (float[3,3] a) => (t) { t = smelt.Tomorrow(a) }",
        "no installed package declares the operator",
    ),
    "an unknown type": (
        "g (float[3,3] a) => (float[3,3] t) { b = mine.Unknown(a)  t = smelt.Digamma(b) }",
        "the element type of 'b', which is unknown",
    ),
    "an unknown rank": (
        "g (float[3,3] a, int64[n] s) => (t) <float[] b> { b = Reshape(a, s)  t = smelt.Cholesky(b) }",
        "the rank of 'b', which is unknown",
    ),
    "an old opset": (
        '<ir_version: 8, opset_import: ["" : 17, "smelt" : 1]>'
        "g (float[3,3] a) => (float[3,3] t) { t = smelt.Cholesky(a) }",
        "its body needs ONNX opset 18, and the model has 17",
    ),
}


@pytest.mark.parametrize(("source", "why"), BARE.values(), ids=BARE)
def test_operators_without_body_are_never_written(source: str, why: str, tmp_path: Path) -> None:
    model = text.parse(source)
    for node in model.graph:
        node.name = "here"
    for write in (smelt.to_proto, lambda m: smelt.save(m, tmp_path / "m.onnx")):
        with pytest.raises(ErrorList) as caught:
            write(model)
        assert caught.value.code == "E203"
        assert "smelt." in caught.value.what
        assert "'here'" in caught.value.at[0]
        assert why in caught.value.why
        assert "target='host'" in caught.value.fix
    assert not list(tmp_path.iterdir())


def test_keep_bare_writes_operators_without_body(tmp_path: Path) -> None:
    model = text.parse(BARE["no body"][0])
    path = smelt.save(model, tmp_path / "m.onnx", keep_bare=True)
    assert [node.op_type for node in smelt.load(path).graph] == ["ValidateNonsingular"]
    artifact = smelt.compile(str(path), target="host")
    a = np.diag(np.arange(1, 4, dtype=np.float32))
    np.testing.assert_allclose(artifact(a)[0], a)


def test_operators_that_the_user_brought_stay(tmp_path: Path) -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>'
        "g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.QuickGelu(x) }"
    )
    path = smelt.save(model, tmp_path / "m.onnx")
    assert [node.op_type for node in onnx.load(path).graph.node] == ["QuickGelu"]


def test_a_call_without_its_operands_is_refused(tmp_path: Path) -> None:
    model = text.parse("g (float[2,3] x) => (y) { y = smelt.TriangularSolve(x) }")
    with pytest.raises(InvalidModel, match=r"inputs are \(a, b\)") as caught:
        smelt.save(model, tmp_path / "m.onnx")
    assert caught.value.code == "E330"


@pytest.fixture
def third_party() -> Iterator[None]:
    """A package's operators: ``Outer``, whose body holds one of ours, and one that never ends."""

    def body(kind: str) -> Any:
        def build(b: Any, inputs: Any, attributes: Any) -> Any:
            inner = {"domain": "smelt"} if kind == "Digamma" else {"domain": "example.vendor"}
            return (b.op("Neg", b.op(kind, inputs[0], **inner)),)

        return build

    def infer(inputs: Any, attributes: Any) -> Any:
        return (operators.declare.Result(inputs[0].dtype, inputs[0].shape),)

    made = [
        Operator(
            domain="example.vendor",
            name=name,
            inputs=("x",),
            outputs=("y",),
            infer=infer,
            reference=lambda inputs, attributes: inputs,
            body=body(inner),
            version=2,
        )
        for name, inner in (("Outer", "Digamma"), ("Endless", "Endless"))
    ]
    with registry.OPERATORS.refilled():
        operators.register(*made)
        yield


def test_bodies_bring_the_bodies_that_they_call(third_party: None, tmp_path: Path) -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "example.vendor" : 2]>'
        "g (float[2,3] x) => (float[2,3] y) { y = example.vendor.Outer(x) }"
    )
    for functions, written in ((False, []), (True, ["Digamma", "Outer"])):
        path = smelt.save(model, tmp_path / "m.onnx", functions=functions)
        (result,) = run(path, X)
        np.testing.assert_allclose(result, -reference("Digamma", X), rtol=1e-5)
        assert sorted(each.name for each in onnx.load(path).functions) == written
    assert [node.op_type for node in smelt.load(path).graph] == ["Outer"]


def test_a_body_that_needs_itself_is_a_fault_of_its_package(third_party: None) -> None:
    model = text.parse("g (float[2,3] x) => (y) { y = example.vendor.Endless(x) }")
    for functions in (False, True):
        with pytest.raises(UsageError, match="needs itself") as caught:
            smelt.to_proto(model, functions=functions)
        assert caught.value.code == "E645"
