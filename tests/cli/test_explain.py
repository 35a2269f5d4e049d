"""``smelt explain``: codes, passes, stages, targets and operators, from the registries."""

import pytest

from smelt.consumers.find import ANY, consumers
from smelt.errors import did_you_mean
from smelt.ir import opset
from smelt.passes.pipeline import parse
from smelt.passes.pipelines import STAGES
from smelt.targets.registry import find_target, target_names


@pytest.fixture
def explained(smelt, document):
    """The words and the facts about a topic."""

    def call(topic):
        result = smelt("explain", topic)
        assert result.exit_code == 0, result.stderr
        return result.stdout, document(smelt("explain", topic, "--json"))

    return call


@pytest.mark.parametrize(
    ("topic", "kind", "name"),
    [
        ("Resize", "operator", "Resize"),
        ("resize", "operator", "Resize"),
        ("reduce_mean", "operator", "ReduceMean"),
        ("smelt.LU", "operator", "LU"),
        ("lu", "operator", "LU"),
        ("C", "target", "c"),
        ("Fuse_Swish", "pass", "fuse-swish"),
        ("e101", "code", None),
        ("default", "stage", "default"),
        ("attention", "stage", "attention"),
        ("Attention", "operator", "Attention"),
        ("openvino", "consumer", "openvino"),
        ("CoreML_EP", "consumer", "coreml-ep"),
        ("any", "consumer", "any"),
        ("quantize", "stage", "quantize"),
        ("consumer:quantize", "consumer", "quantize"),
    ],
)
def test_names_are_found_whatever_their_capitals(explained, topic, kind, name):
    _, facts = explained(topic)
    assert (facts["schema"], facts["kind"]) == ("smelt.explain/1", kind)
    assert facts.get("name") == name


def test_other_meanings_of_a_name_are_listed(explained):
    assert "There is the operator Attention, too" in explained("attention")[0]
    assert "There is the stage attention, too" in explained("Attention")[0]
    assert "There is the operator smelt.Erf, too" in explained("Erf")[0]


@pytest.mark.parametrize(
    ("topic", "meant"),
    [
        ("reszie", "did you mean 'Resize'"),
        ("FUSE-SWICH", "did you mean 'fuse-swish'"),
        ("e10", "did you mean 'E101'"),
        ("hst", "'host'"),
        ("xyzzy", "`smelt passes` lists passes"),
    ],
)
def test_similar_topics_are_proposed(smelt, topic, meant):
    result = smelt("explain", topic)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("E638 ")
    assert meant in result.stderr


def test_an_operator_of_onnx(explained):
    text, facts = explained("Resize")
    assert facts["since"] == [10, 11, 13, 18, 19]
    assert facts["inputs"] == ["X", "roi?", "scales?", "sizes?"]
    assert facts["attributes"]["mode"] == "nearest"
    assert facts["targets"]["onnx"]["takes"] is True
    assert facts["targets"]["c"]["takes"] is True
    assert "reduce-transposes" in facts["passes"]["name_it"]
    assert "noop-elimination" in facts["passes"]["look_for_it"]
    assert "Also named by: " in text
    text, facts = explained("Bernoulli")
    assert facts["targets"]["c"]["takes"] is False
    assert any(line.split()[:2] == ["c", "no"] for line in text.splitlines())


def test_limits_of_a_lowering_are_shown(explained):
    text, facts = explained("Dropout")
    assert (
        facts["program"] == "Emit the identity; a run whose inputs request dropped elements aborts."
    )
    assert facts["program"] in text
    assert explained("Bernoulli")[1]["program"] is None


def test_an_operator_that_passes_make(explained):
    passes = explained("Swish")[1]["passes"]
    assert "fuse-swish" in passes["make_it"]
    assert "fuse-swish" not in passes["look_for_it"]
    looked_for = explained("Erf")[1]["passes"]["look_for_it"]
    assert "fuse-gelu-exact" in looked_for


def test_element_types_are_those_that_operator_target_and_kernel_take(explained):
    targets = explained("Sigmoid")[1]["targets"]
    assert {"double", "float", "float16"} <= {*targets["c"]["dtypes"]}
    assert not {"int8", "bool"} & {*targets["c"]["dtypes"]}
    assert targets["host"]["dtypes"] == ["bfloat16", "double", "float", "float16"]


def test_operators_beyond_onnx(explained):
    text, facts = explained("smelt.LU")
    assert facts["outputs"] == ["lu", "pivots", "permutation"]
    assert facts["targets"]["host"]["takes"] is True
    assert facts["targets"]["c"]["takes"] is True
    assert facts["targets"]["onnx"]["why"] == "by its body of ONNX operators"
    assert explained("smelt.SVD")[1]["targets"]["c"]["why"] == "by its body of ONNX operators"
    assert explained("smelt.Eig")[1]["targets"]["c"]["takes"] is True
    assert explained("smelt.Schur")[1]["targets"]["c"]["takes"] is True
    assert "Triangular factors" in text
    assert explained("smelt.Eig")[1]["targets"]["onnx"]["why"] == "by its body of ONNX operators"
    onnx = explained("smelt.ValidateNonsingular")[1]["targets"]["onnx"]
    assert onnx["takes"] is False
    assert explained("smelt.c.ConvRelu")[1]["targets"]["c"]["why"] == "its own"


def test_every_operator_can_be_explained(smelt):
    from smelt.cli.topics import topics
    from smelt.targets.describe import describe_operator

    asked = [topic for topic in topics() if topic.kind == "operator"]
    assert {topic.name for topic in asked} >= set(opset.operators())
    for topic in asked:
        assert describe_operator(topic.domain, topic.name)["since"], topic


@pytest.mark.parametrize("name", target_names())
def test_a_target(explained, name):
    text, facts = explained(name)
    target = find_target(name)
    assert facts["summary"] == target.summary
    assert facts["dynamic_dims"] is target.limits.dynamic_dims
    assert list(facts["phases"])[-1] == "emit"
    assert parse(facts["passes"]) == parse(target.passes)
    assert (facts["kernels"] is None) == (target.kernels is None)
    for phase in facts["phases"]:
        assert f"  {phase} " in text


def test_the_options_of_a_target(explained):
    text, facts = explained("c")
    assert facts["options"]["name"] == {"type": "str", "default": "model"}
    assert ["name", "str", "model"] in [line.split() for line in text.splitlines()]
    assert facts["own_operators"] == ["smelt.c.ConvRelu"]
    assert explained("host")[1]["options"] == {
        "engine": {"type": "str", "default": "numpy"},
        "threads": {"type": "int", "default": 1},
        "views": {"type": "bool", "default": False},
    }


@pytest.mark.parametrize("name", [*consumers(), ANY])
def test_a_consumer(explained, name):
    text, facts = explained(f"consumer:{name}")
    source = consumers()[name].source if name in consumers() else facts["source"]
    assert facts["source"] == source
    for fact in (source, facts["summary"], *facts["defects"], *facts["limits"]):
        assert fact in " ".join(text.split())
    for operator in facts["operators"] or facts["refused"]:
        assert operator in text


def test_the_forms_of_an_operator_that_a_consumer_takes(explained):
    text, facts = explained("nnapi")
    assert facts["operators"]["DepthToSpace"] == "mode DCR"
    assert facts["operators"]["Conv"] == "4 dims; constant inputs 1, 2"
    assert ["Conv", "4", "dims;", "constant", "inputs", "1,", "2"] in [
        line.split() for line in text.splitlines()
    ]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_stands_for_its_passes(explained, stage):
    text, facts = explained(stage)
    assert parse(facts["pipeline"]) == parse(stage)
    assert facts["pipeline"] in text


def test_a_pass_keeps_its_facts(explained):
    _, facts = explained("add-fp16-cast")
    assert "skip-ops-by-type" in facts["options"]
    assert facts["page"].startswith("Compute in float16")


def test_support_on_c_agrees_with_compiling(smelt, write, tmp_path, explained):
    header = '<ir_version: 10, opset_import: ["" : 20]> '
    for operator, taken in (("Sigmoid", True), ("Bernoulli", False), ("Det", True)):
        dims = {"Det": ("2,2", "float")}
        given, result = dims.get(operator, ("2,2", "float[2,2]"))
        text = f"{header}g (float[{given}] x) => ({result} y) {{ y = {operator}(x) }}"
        compiled = smelt("compile", write(text), "--target", "c", "-o", tmp_path / operator)
        assert (compiled.exit_code == 0) is taken
        assert explained(operator)[1]["targets"]["c"]["takes"] is taken


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("reduce_mean", ["ReduceMean", "ReduceMax"], "did you mean 'ReduceMean'?"),
        ("FUSE_", ["fuse-swish", "other"], "did you mean 'fuse-swish'?"),
        ("", ["a"], "nothing"),
        ("zzz", [], "nothing"),
    ],
)
def test_near_names_whatever_their_capitals(name, known, text):
    assert did_you_mean(name, known, "nothing") == text


def test_a_target_that_cannot_be_loaded_hides_no_other(explained, monkeypatch):
    from smelt.errors import UsageError
    from smelt.targets import describe

    def find(name):
        if name == "broken":
            raise UsageError("E615", "the target 'broken' cannot be loaded")
        return find_target(name)

    monkeypatch.setattr(describe, "target_names", lambda: ("broken", "onnx"))
    monkeypatch.setattr(describe, "find_target", find)
    text, facts = explained("Relu")
    assert facts["targets"]["broken"]["why"] == "the target 'broken' cannot be loaded"
    assert facts["targets"]["onnx"]["takes"] is True
    assert "cannot be loaded" in text
