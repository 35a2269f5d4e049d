"""Tuning: what pays is kept, what does not is not, and the result is never slower than the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.errors import InvalidModel, SmeltError
from smelt.ir import text
from smelt.runtime.session import STOP_SPINNING, SessionAdvice
from smelt.targets.ort.saved import read_advice
from smelt.tuning import search, tune_model
from smelt.tuning.race import Comparison, race
from smelt.tuning.setup import SKIP_NORM

MODEL = text.parse("""
    g (float[N,32,64] x, float[64] g, float[64] b) => (float[N,32,64] y) {
        t = Transpose<perm=[0,1,2]>(x) r = Add(x, t) n = LayerNormalization(r, g, b)
        h = Constant<value_float=0.5>() o = Constant<value_float=1.0>()
        q = Constant<value_float=1.4142135>() d = Div(n, q) e = Erf(d) a = Add(e, o)
        m = Mul(n, a) y = Mul(m, h)
    }
""")
X = [
    np.linspace(-1, 1, n, dtype=np.float32).reshape(s)
    for n, s in ((4096, (2, 32, 64)), (64, 64), (64, 64))
]

Judge = Callable[[Any, Any], float]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Judge], None]:
    """Let a function of both artifacts say what the second takes as a part of the first."""

    def install(judge: Judge) -> None:
        def compare(self: Any, one: Any, other: Any, seconds: float) -> Comparison:
            ratio = judge(one, other)
            return Comparison(ratio, ratio, ratio, 1.0)

        monkeypatch.setattr(search._Search, "compare", compare)

    return install


def _tried(artifact: Any) -> Mapping[str, bool]:
    return {each["what"]: each["taken"] for each in artifact.report["tune"]["tried"]}


def _tuned() -> Any:
    return tune_model(MODEL, seconds=100, sizes={"N": 2})


def test_faster_variants_are_kept_and_reported(judged: Callable[[Judge], None]) -> None:
    judged(lambda one, other: 0.9 if len(other.model.graph) < len(one.model.graph) else 1.0)
    artifact = _tuned()
    names = [node.op_type for node in artifact.model.graph]
    assert names == ["Sum", "LayerNormalization", "Gelu"]
    tried = _tried(artifact)
    assert tried["as compiled"]
    assert not tried["without the pass fuse-gelu-exact"]
    assert not artifact.report["tune"]["source taken"]
    assert artifact.report["tune"]["sizes"] == {"N": 2}
    expected = smelt.compile(MODEL, target="onnx")(*X)[0]
    np.testing.assert_allclose(artifact(*X)[0], expected, rtol=1e-5, atol=1e-6)


def test_a_pass_and_a_choice_that_cost_are_left_out(judged: Callable[[Judge], None]) -> None:
    def judge(one: Any, other: Any) -> float:
        names = [{node.op_type for node in each.model.graph} for each in (one, other)]
        dear = [len(f & {"Gelu", "Sum"}) + 3 * len(f & {"Transpose"}) for f in names]
        return 1 + 0.1 * (dear[1] - dear[0])

    judged(judge)
    artifact = _tuned()
    tried = _tried(artifact)
    assert tried["without the pass fuse-gelu-exact"]
    assert tried["without the choice residual-layer-norm"]
    assert not {"Gelu", "Sum"} & {node.op_type for node in artifact.model.graph}


def test_a_slower_result_is_not_taken(judged: Callable[[Judge], None]) -> None:
    calls = [0]

    def judge(one: Any, other: Any) -> float:
        calls[0] += 1
        return 0.5 if calls[0] <= 2 else 1.5

    judged(judge)
    artifact = _tuned()
    assert artifact.report["tune"]["source taken"]
    assert len(artifact.model.graph) == len(MODEL.graph)


@pytest.mark.parametrize("seed", range(4))
def test_with_noise_in_every_race_the_result_is_no_slower_than_noise_explains(
    judged: Callable[[Judge], None], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    noise, dear = 0.01, {name: rng.uniform(-0.1, 0.1) for name in ("Gelu", "Sum", "Transpose")}

    def cost(model: Any) -> float:
        names = {node.op_type for node in model.graph}
        return 1 + sum(dear[name] for name in names & dear.keys())

    def judge(one: Any, other: Any) -> float:
        return cost(other.model) / cost(one.model) * rng.uniform(1 - noise, 1 + noise)

    judged(judge)
    assert cost(_tuned().model) <= cost(MODEL) * search.NOISE / (1 - noise)


def test_equal_layers_are_decided_on_together(judged: Callable[[Judge], None]) -> None:
    body = "".join(
        f" r{i} = Add(x{i}, x) x{i + 1} = LayerNormalization(r{i}, g, b)" for i in range(12)
    )
    layers = text.parse(
        "g (float[2,32,64] x, float[64] g, float[64] b) => (float[2,32,64] y)"
        f" {{ x0 = Neg(x) {body} y = Identity(x12) }}"
    )

    def cost(artifact: Any) -> float:
        names = [node.op_type for node in artifact.model.graph]
        return len(names) + 0.05 * names.count("Sum")

    judged(lambda one, other: cost(other) / cost(one))
    artifact = tune_model(layers, seconds=100)
    tried = [each["what"] for each in artifact.report["tune"]["tried"]]
    assert tried.count("without the choice residual-layer-norm") == 1
    names = [node.op_type for node in artifact.model.graph]
    assert (names.count("Add"), names.count("Sum")) == (12, 0)


def test_options_of_the_session_are_kept(judged: Callable[[Judge], None], tmp_path: Path) -> None:
    judged(lambda one, other: 0.9 if other.advice.without and not one.advice.without else 1.0)
    artifact = _tuned()
    assert artifact.advice == SessionAdvice(threads=1, without=SKIP_NORM)
    artifact.save(tmp_path)
    assert read_advice(tmp_path) == artifact.advice
    session = artifact.session()
    np.testing.assert_allclose(
        session.run(None, dict(zip("xgb", X, strict=True)))[0],
        artifact(*X)[0],
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_without_time_the_compiled_graph_is_tried_all_the_same(
    ratio: float, judged: Callable[[Judge], None]
) -> None:
    judged(lambda one, other: 1.0 if one is other else ratio)
    report = tune_model(MODEL, seconds=0).report["tune"]
    compiled, *others = report["tried"]
    assert (compiled["what"], compiled["ratio"]) == ("as compiled", ratio)
    assert report["source taken"] == (ratio == 1.0)
    assert {each.get("why") for each in others} == {"no time was left"}


def test_a_source_that_the_runtime_refuses_is_tuned(judged: Callable[[Judge], None]) -> None:
    judged(lambda one, other: [one.session(), other.session()] and 1.0)  # type: ignore[return-value]
    model = text.parse("g (bfloat16[4] x) => (bfloat16[4] y) { e = Exp(x) y = Neg(e) }")
    artifact = tune_model(model, seconds=100)
    assert artifact.model.graph.outputs[0].dtype == model.graph.outputs[0].dtype


def test_an_equal_candidate_stands_at_one() -> None:
    artifact = smelt.compile(MODEL, target="ort")
    opens: Sequence[Any] = [artifact.opener(threads=1)] * 2
    feeds = dict(zip("xgb", X, strict=True))
    first, second = race(opens, feeds, 0.3, 1)
    assert first.ratio == first.creation == 1
    assert 0.5 < second.ratio < 2


def test_sessions_that_race_leave_the_cores_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """On several threads, those of one session would wait in a loop while the other runs."""
    opened = []

    def watched(opens: Sequence[Any], *given: Any) -> list[Comparison]:
        opened.extend(each().get_session_options() for each in opens)
        return [Comparison(1.0, 1.0, 1.0, 1.0)] * len(opens)

    monkeypatch.setattr(search, "race", watched)
    advice = tune_model(MODEL, seconds=0.1, sizes={"N": 2}, threads=2).advice
    assert {each.get_session_config_entry(STOP_SPINNING) for each in opened} == {"1"}
    assert advice.spinning_after_run


def test_sizes_of_unknown_dims_are_refused() -> None:
    with pytest.raises(SmeltError) as caught:
        tune_model(MODEL, seconds=1, sizes={"M": 2})
    assert caught.value.code == "E633"


def test_a_model_of_bfloat16_is_timed() -> None:
    model = text.parse("g (bfloat16[4] x) => (bfloat16[4] y) { e = Exp(x) y = Neg(e) }")
    assert tune_model(model, seconds=0).report["tune"]["tried"]


FAR = (
    "g (float[8,4] x, int64[2] s) => (float[2,4] y) <int64 far = {1000}> "
    "{ i = Sub(s, far) y = Gather(x, i) }"
)
"""The indices have to be 1000 to 1007; inputs that smelt makes up are smaller."""


def test_made_up_inputs_that_the_source_refuses_are_told(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SmeltError) as caught:
        tune_model(text.parse(FAR), seconds=0)
    assert capfd.readouterr() == ("", ""), "ONNX Runtime logs what the error says"
    assert caught.value.code == "E321"
    assert "inputs=" in caught.value.fix
    given = {"s": np.array([1003, 1007])}
    assert tune_model(text.parse(FAR), seconds=0, inputs=given).report["tune"]["tried"]


def test_a_candidate_that_does_not_run_is_not_taken(judged: Callable[[Judge], None]) -> None:
    def judge(one: Any, other: Any) -> float:
        if other.advice.level == "basic":
            raise InvalidModel("E320", "ONNX Runtime refuses the model", why="no such level")
        return 0.9

    judged(judge)
    (basic,) = (e for e in _tuned().report["tune"]["tried"] if e["what"] == "level basic")
    assert basic == {"what": "level basic", "taken": False, "why": "it fails: no such level"}
