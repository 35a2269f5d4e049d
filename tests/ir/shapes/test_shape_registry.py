"""smelt never changes the registry of onnx-shape-inference."""

from __future__ import annotations

import subprocess
import sys

from onnx_shape_inference import registry as theirs

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.shapes.shape_registry import infer_everything, registry, take_over
from smelt.operators import all_operators
from smelt.operators.registry import OPERATORS

ALONE = """
import sys

import onnx
import onnx_ir as ir
from onnx_shape_inference import infer_symbolic_shapes, registry

sources = [onnx.parser.parse_model(source) for source in sys.argv[1:]]

def inferred():
    models = [ir.from_proto(source) for source in sources]
    for model in models:
        infer_symbolic_shapes(model)
    nodes = [node for model in models for node in model.graph]
    return [(str(value.shape), str(value.dtype)) for node in nodes for value in node.outputs]

def rules():
    return {
        (domain, op_type, version): registry.get(domain, op_type, version)
        for domain, op_type, versions in registry.iter_supported()
        for version in versions
    }

before, known = inferred(), rules()
import smelt
for source in sources:
    smelt.optimize(smelt.load(source))
smelt.optimize(smelt.trace(lambda x: x @ x.T, "f32[B,4]"))
smelt.compile(lambda x: x @ x.T, "f32[B,4]", target="host")
assert rules() == known, "rules changed"
assert inferred() == before, (inferred(), before)
print("as before")
"""

HEADER = '<ir_version: 10, opset_import: ["": 20]> '
MODELS = (
    # A slice that may be shorter, and a broadcast of symbols.
    "g (float[N,4] x) => (float[M,4] y) "
    "{ s = Constant<value_ints=[0]>() e = Constant<value_ints=[5]>() y = Slice(x, s, e) }",
    "g (float[N,4] x, float[M,4] z) => (float[K,4] y) { y = Add(x, z) }",
)


def test_the_library_infers_as_before_once_smelt_was_used() -> None:
    command = [sys.executable, "-c", ALONE, *(HEADER + model for model in MODELS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "as before", done.stderr


def test_the_registry_begins_with_all_rules_of_the_library() -> None:
    all_operators()
    take_over()
    listed = {(domain, op_type) for domain, op_type, _ in theirs.iter_supported()}
    assert listed <= {(domain, op_type) for domain, op_type, _ in registry.iter_supported()}
    assert not any(domain.startswith("smelt") for domain, _ in listed)


def test_models_with_subgraphs_are_inferred_by_our_rules() -> None:
    model = text.parse(
        "g (bool p, float[N,4] x) => (y) { y = If(p) <"
        "then_branch = a () => (z) { s = Constant<value_ints=[0]>() e = Constant<value_ints=[5]>()"
        " z = Slice(x, s, e) }, else_branch = b () => (w) { w = Neg(x) }> }"
    )
    ShapeInference(model)  # Registers our rules.
    infer_everything(model)
    branch = model.graph[0].attributes["then_branch"].as_graph()
    assert str(branch.outputs[0].shape) == "[Min(5, N),4]"


def test_each_rule_is_checked_once() -> None:
    """The registry lists a version again for each registration; each version is wrapped once."""
    ShapeInference(text.parse("g (float[2] x) => (float[2] y) { y = Abs(x) }"))
    for op_type in ("Add", "Tanh", "Reshape"):
        rule = registry.get("", op_type, version=20)
        inner = [cell.cell_contents for cell in rule.__closure__ or ()]
        assert rule.__qualname__.startswith("_checked")
        assert not any(getattr(each, "__qualname__", "").startswith("_checked") for each in inner)


def test_rules_of_our_own_operators_are_not_replaced() -> None:
    all_operators()
    take_over.__wrapped__()  # once more, for it is cached
    both = [key for key, each in OPERATORS.items() if theirs.has(*key) and each.version == 1]
    assert ("com.microsoft", "Attention") in both
    assert not [key for key in both if registry.get(*key, 1) is theirs.get(*key, 1)]
