"""The artifact of ``ort``: its files, its session, and the folder that it is saved to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.conformance import CASES, Case, conform
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.inputs import random_inputs
from smelt.runtime.session import STOP_SPINNING, SessionAdvice
from smelt.targets.ort import ort
from smelt.targets.ort.artifact import LEAST_MAPPED_BYTES, OrtArtifact
from smelt.targets.ort.saved import SavedForOrt, open_folder, read_advice

MODEL = "g (float[N,64] x) => (float[N,64] y) { s = Sigmoid(x) m = Mul(x, s) y = Gelu(m) }"
X = np.linspace(-2, 2, 128, dtype=np.float32).reshape(2, 64)


def _artifact() -> OrtArtifact:
    artifact = smelt.compile(text.parse(MODEL), target=ort)
    assert isinstance(artifact, OrtArtifact)
    return artifact


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_a_target(case: Case) -> None:
    conform(ort, case)


def test_a_session_is_opened_as_advised() -> None:
    artifact = _artifact()
    session = artifact.session(threads=1)
    assert session.get_session_options().intra_op_num_threads == 1
    (result,) = session.run(None, {"x": X})
    np.testing.assert_allclose(result, artifact(X)[0], rtol=1e-5)


WEIGHTS = np.linspace(-1, 1, 64 * 256, dtype=np.float32).reshape(64, 256)


def _weighty(columns: int = 256, **options: object) -> OrtArtifact:
    model = text.parse("g (float[N,64] x, float[64,M] w) => (float[N,M] y) { y = MatMul(x, w) }")
    weight = model.graph.inputs.pop()
    weight.const_value = ir.tensor(WEIGHTS[:, :columns], name="w")
    weight.shape = ir.Shape([64, columns])
    model.graph.register_initializer(weight)
    artifact = smelt.compile(model, target=ort, **options)
    assert isinstance(artifact, OrtArtifact)
    return artifact


def test_weights_beyond_the_limit_stand_beside_the_model(tmp_path: Path) -> None:
    assert set(_weighty().files) == {"model.onnx", "session.json"}
    artifact = _weighty(inline_limit=WEIGHTS.nbytes - 1)
    assert set(artifact.files) == {"model.onnx", "model.onnx.data", "session.json"}
    opened = artifact.opener(threads=1)
    artifact.save(tmp_path)
    saved = open_folder(tmp_path)
    assert isinstance(saved, SavedForOrt)
    for session in (opened(), opened(), artifact.session(threads=1), saved.session(threads=1)):
        np.testing.assert_allclose(
            session.run(None, {"x": X})[0], X @ WEIGHTS, rtol=1e-4, atol=1e-5
        )


def test_a_small_weight_stays_in_the_model_for_to_map_it_takes_longer_than_to_copy_it() -> None:
    assert WEIGHTS.nbytes == LEAST_MAPPED_BYTES
    assert set(_weighty(columns=255, inline_limit=0).files) == {"model.onnx", "session.json"}
    beside = _weighty(columns=256, inline_limit=0)
    assert set(beside.files) == {"model.onnx", "model.onnx.data", "session.json"}


def test_constants_that_the_runtime_reads_early_stay_in_the_model() -> None:
    source = text.parse("""g (float[1,8,2,N] x) => (float[1,8,H,W] y)
        <float[4] s = {1, 1, 2, 2}> { y = Resize<mode = "nearest">(x, , s) }""")
    artifact = smelt.compile(source, target=ort, inline_limit=0)
    (x,) = random_inputs(source, {"N": 1})
    ((result,), expected) = artifact.session().run(None, {"x": x}), artifact(x)[0]
    np.testing.assert_array_equal(result, expected)


def test_a_limit_below_zero_is_refused() -> None:
    with pytest.raises(SmeltError) as caught:
        _weighty(inline_limit=-1)
    assert caught.value.code == "E660"


def test_the_folder_keeps_the_advice(tmp_path: Path) -> None:
    plain = _artifact()
    artifact = plain.advised(SessionAdvice("basic", without=("GeluFusion",), spinning=False))
    assert plain.advice == SessionAdvice()
    names = {path.name for path in artifact.save(tmp_path)}
    assert names == {"model.onnx", "session.json"}
    assert read_advice(tmp_path) == artifact.advice
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"))
    saved = smelt.load_artifact(tmp_path)
    assert isinstance(saved, SavedForOrt)
    assert saved.target == "ort"
    assert saved.advice == artifact.advice
    opened = [each.session().get_session_options() for each in (saved, plain)]
    assert [each.graph_optimization_level.name for each in opened] == [
        "ORT_ENABLE_BASIC",
        "ORT_ENABLE_ALL",
    ]
    assert saved.session(threads=2).get_session_options().intra_op_num_threads == 2
    assert not saved.session().get_session_options().enable_mem_reuse
    assert saved.session(memory_reuse=True).get_session_options().enable_mem_reuse
    np.testing.assert_allclose(saved.load()(X)[0], artifact(X)[0], rtol=1e-6)


def test_threads_stop_to_wait_in_a_loop_after_a_run_where_that_is_wanted() -> None:
    for spinning_after_run in (True, False):
        options = _artifact().session(spinning_after_run=spinning_after_run).get_session_options()
        if spinning_after_run:
            with pytest.raises(RuntimeError):
                options.get_session_config_entry(STOP_SPINNING)
        else:
            assert options.get_session_config_entry(STOP_SPINNING) == "1"


@pytest.mark.parametrize(
    "document", ["[]", "{", '{"level": "most"}', '{"threads": "2"}', '{"a": 1}']
)
def test_other_advice_is_refused(document: str, tmp_path: Path) -> None:
    _artifact().save(tmp_path)
    (tmp_path / "session.json").write_text(document)
    with pytest.raises(SmeltError) as caught:
        open_folder(tmp_path)
    assert caught.value.code == "E663"
    assert str(tmp_path / "session.json") in str(caught.value)


def test_a_folder_of_another_target_is_none_of_its_own(tmp_path: Path) -> None:
    smelt.compile(text.parse(MODEL), target="onnx").save(tmp_path)
    assert open_folder(tmp_path) is None


WRONG = [np.zeros((2, 64)), np.zeros(64, np.float32), np.zeros((2, 63), np.float32)]


@pytest.mark.parametrize("given", WRONG, ids=["type", "rank", "size"])
def test_inputs_that_the_model_does_not_take_are_refused(given: np.ndarray, tmp_path: Path) -> None:
    artifact = _artifact()
    artifact.save(tmp_path)
    for each in (artifact, smelt.load_artifact(tmp_path)):
        with pytest.raises(SmeltError) as caught:
            each(given)
        assert caught.value.code == "E632"
        assert each(X[:1])[0].shape == (1, 64)


WRONG_OPTIONS = {
    "no option": ({"thread": 1}, "did you mean 'threads'?"),
    "a text": ({"threads": "2"}, "a whole number"),
    "below zero": ({"threads": -1}, "a whole number"),
    "true for a number": ({"threads": True}, "a whole number"),
    "no level": ({"level": "most"}, "one of disabled, basic, extended, all"),
    "one name for a list": ({"without": "GeluFusion"}, "a list of names"),
    "a number for true": ({"arena": 1}, "true or false"),
}


@pytest.mark.parametrize(("options", "told"), WRONG_OPTIONS.values(), ids=WRONG_OPTIONS.keys())
def test_options_of_a_session_are_checked(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SmeltError) as caught:
        _artifact().session(**options)
    assert caught.value.code == "E663"
    assert told in f"{caught.value.why} {caught.value.fix}"


def test_optimizers_are_left_out_by_a_tuple_or_a_list() -> None:
    for names in (("GeluFusion",), ["GeluFusion"]):
        (result,) = _artifact().session(without=names).run(None, {"x": X})
        np.testing.assert_allclose(result, _artifact()(X)[0], rtol=1e-5)


def test_the_advice_is_json() -> None:
    advice = SessionAdvice(threads=2, arena=False)
    assert SessionAdvice.from_json(json.loads(json.dumps(advice.to_json()))) == advice
