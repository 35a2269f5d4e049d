"""A session tells and computes what ONNX Runtime's session does, and refuses wrong feeds."""

from __future__ import annotations

import logging
import threading

import numpy as np
import onnx
import onnx.helper
import onnxruntime
import pytest
from onnx import TensorProto
from small_models import HEADER, MODEL, VARIED

import smelt
import smelt.onnxruntime as ort
from smelt.errors import ErrorList, UsageError
from smelt.frontends.onnx import to_proto
from smelt.ir import text

RUN = {name: source for name, source in VARIED.items() if name != "quantized"}
"""Models whose nodes are in order, as ONNX Runtime demands."""

DESCRIBED = {
    **RUN,
    "symbolic": MODEL,
    "unnamed dims": HEADER + "g (float[?,?,3] x, float u) => (float[?,?,3] y) { y = Add(x, u) }",
    "a default": HEADER
    + "g (float[2] x, float[2] b) => (float[2] y) <float[2] b = {5, 6}> { y = Add(x, b) }",
    "a sequence": HEADER + "g (float[2] x) => (seq(float[2]) s, optional(float[2]) o) "
    "{ s = SequenceConstruct(x, x) o = Optional(x) }",
    "small floats": HEADER + "g (float16[2] x, bfloat16[2] b) => (float16[2] y, bfloat16[2] c) "
    "{ y = Identity(x) c = Identity(b) }",
    "strings": HEADER + "g (string[2] x, float[2] f) => (string[2] y, float[2] h) "
    "{ y = StringConcat(x, x) h = Relu(f) }",
}
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}


def _bytes(source: str) -> bytes:
    return to_proto(text.parse(source)).SerializeToString()


def _reference(model: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def _session(source: str, **entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in {"smelt.engine": "numpy", **entries}.items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(_bytes(source), options)


def _feeds(session: ort.InferenceSession) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        port.name: rng.integers(0, 2, [d if isinstance(d, int) else 3 for d in port.shape]).astype(
            TYPES[port.type]
        )
        for port in session.get_inputs()
    }


@pytest.mark.parametrize("name", DESCRIBED)
def test_ports_are_spelled_as_onnx_runtime_spells_them(name: str) -> None:
    model = _bytes(DESCRIBED[name])
    ours, theirs = _session(DESCRIBED[name]), _reference(model)
    for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        expected = [(port.name, port.type, port.shape) for port in getattr(theirs, method)()]
        actual = [(port.name, port.type, port.shape) for port in getattr(ours, method)()]
        assert actual == expected


@pytest.mark.parametrize("name", RUN)
def test_results_are_those_of_onnx_runtime(name: str) -> None:
    ours, theirs = _session(VARIED[name]), _reference(_bytes(VARIED[name]))
    feeds = _feeds(ours)
    for actual, expected in zip(ours.run(None, feeds), theirs.run(None, feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        assert actual.dtype == expected.dtype


def test_metadata_is_that_of_the_model() -> None:
    proto = to_proto(text.parse(MODEL))
    proto.producer_name, proto.domain, proto.doc_string = "maker", "org.example", "a model"
    proto.model_version, proto.graph.doc_string = 7, "a graph"
    onnx.helper.set_model_props(proto, {"key": "value"})
    model = proto.SerializeToString()
    ours, theirs = ort.InferenceSession(model).get_modelmeta(), _reference(model).get_modelmeta()
    for name in ours.__dataclass_fields__:
        assert getattr(ours, name) == getattr(theirs, name), name
    bare = _bytes(MODEL)
    expected = _reference(bare).get_modelmeta().version
    assert ort.InferenceSession(bare).get_modelmeta().version == expected


def test_outputs_come_in_the_order_of_the_names() -> None:
    session = _session(VARIED["attention"])
    feeds = _feeds(session)
    y, z = session.run(["y", "z"], feeds)
    swapped = session.run(["z", "y"], feeds)
    np.testing.assert_array_equal(swapped[0], z)
    np.testing.assert_array_equal(swapped[1], y)
    with pytest.raises(UsageError, match=r"no output 'yy'") as error:
        session.run(["yy"], feeds)
    assert "'y'" in error.value.fix


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, "no value for 'x'"),
        ({"x": np.ones((1, 4), np.float32), "w": np.ones(1)}, "no input 'w'"),
        ({"x": np.ones((1, 4))}, r"'x' must be float\[B,4\], not double\[1,4\]"),
        ({"x": np.ones((1, 5), np.float32)}, r"not float\[1,5\]"),
        ({"x": np.ones(4, np.float32)}, r"not float\[4\]"),
        ({"x": None}, "no values"),
    ],
)
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_wrong_feeds_are_refused(feeds: dict[str, object], words: str, engine: str) -> None:
    session = _session(MODEL, **{"smelt.engine": engine})
    with pytest.raises(UsageError, match=words) as error:
        session.run(None, feeds)
    assert error.value.code == "E632"
    assert session.run(None, {"x": np.zeros((2, 4), np.float32)})[0].shape == (2, 4)


def test_a_default_may_be_given_or_left_out() -> None:
    session = _session(DESCRIBED["a default"])
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [6, 7])
    np.testing.assert_array_equal(session.run(None, {"x": x, "b": x})[0], [2, 2])


def test_nodes_that_host_lacks_run_in_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _session(DESCRIBED["strings"])
    feeds = {"x": np.array(["a", "b"], object), "f": np.array([-1, 2], np.float32)}
    doubled, h = session.run(None, feeds)
    assert doubled.tolist() == ["aa", "bb"]
    np.testing.assert_array_equal(h, [0, 2])
    monkeypatch.setattr("smelt.sessions.compiled.find_spec", lambda name: None)
    with pytest.raises(ErrorList, match="string"):
        _session(DESCRIBED["strings"])


def test_a_saved_artifact_is_opened(tmp_path) -> None:
    artifact = smelt.compile(text.parse(MODEL), target="host", engine="numpy")
    artifact.save(tmp_path / "saved")
    x = np.ones((2, 4), np.float32)
    (y,) = ort.InferenceSession(tmp_path / "saved").run(None, {"x": x})
    np.testing.assert_array_equal(y, artifact(x)[0])


def test_run_async_tells_results_or_the_error() -> None:
    session = _session(MODEL)
    told, done = [], threading.Semaphore(0)

    def tell(results, user_data, error) -> None:
        told.append((results, user_data, error))
        done.release()

    session.run_async(None, {"x": np.ones((1, 4), np.float32)}, tell, "first")
    assert done.acquire(timeout=60)
    session.run_async(None, {}, tell, "second")
    assert done.acquire(timeout=60)
    assert [user_data for _, user_data, _ in told] == ["first", "second"]
    (first, _, no_error), (second, _, error) = told
    assert ([result.shape for result in first], no_error) == ([(1, 4)], "")
    assert second == []
    assert "E632" in error


def test_options_that_mean_something_have_their_effect(tmp_path) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 3
    assert options.threads == 3
    options.add_free_dimension_override_by_name("B", 2)
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.eye(4, dtype=np.float32)))
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = ort.InferenceSession(_bytes(MODEL), options)
    theirs = onnxruntime.SessionOptions()
    theirs.add_free_dimension_override_by_name("B", 2)
    expected = onnxruntime.InferenceSession(_bytes(MODEL), theirs).get_inputs()[0].shape
    assert session.get_inputs()[0].shape == expected == [2, 4]
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x)
    optimized = onnx.load(tmp_path / "optimized.onnx")
    assert "Identity" not in {node.op_type for node in optimized.graph.node}


@pytest.mark.parametrize(
    "value", [np.eye(5, dtype=np.float32), np.eye(4)], ids=["another shape", "another type"]
)
def test_an_initializer_keeps_its_type_and_shape(value: np.ndarray) -> None:
    options = ort.SessionOptions()
    options.add_initializer("w", ort.OrtValue(value))
    with pytest.raises(UsageError, match="another type or shape"):
        ort.InferenceSession(_bytes(MODEL), options)
    options.initializers = {"v": ort.OrtValue(value)}
    with pytest.raises(UsageError, match="no initializer 'v'"):
        ort.InferenceSession(_bytes(MODEL), options)


def test_what_has_no_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    options = ort.SessionOptions()
    options.enable_mem_reuse = False
    options.add_session_config_entry("session.nothing", "1")
    with caplog.at_level(logging.WARNING, "smelt.onnxruntime"):
        for _ in range(2):
            ort.InferenceSession(_bytes(MODEL), options, providers=["TestExecutionProvider"])
    assert [record.args or record.msg for record in caplog.records] == [
        "SessionOptions.enable_mem_reuse has no effect: memory is planned before the first run",
        "the session configuration entry 'session.nothing' has no effect",
        "there is no TestExecutionProvider: sessions of smelt run on the CPU",
    ]
    caplog.clear()
    options.log_severity_level = 3
    options.enable_mem_pattern = False
    ort.InferenceSession(_bytes(MODEL), options)
    assert not caplog.records


def test_operators_of_libraries_are_refused() -> None:
    with pytest.raises(UsageError, match=r"ops\.so"):
        ort.SessionOptions().register_custom_ops_library("ops.so")


def test_bound_memory_holds_the_results() -> None:
    session = _session(VARIED["attention"])
    feeds = _feeds(session)
    y, z = session.run(None, feeds)
    binding = session.io_binding()
    x, memory = feeds["x"], np.zeros_like(y)
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_cpu_input("i", feeds["i"])
    binding.bind_output("z")
    binding.bind_output("y", "cpu", 0, TensorProto.FLOAT, y.shape, memory.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(memory, y)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], z)
    value = ort.OrtValue.ortvalue_from_shape_and_type(y.shape, np.float32)
    binding.clear_binding_outputs()
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), y)
    binding.clear_binding_outputs()
    binding.bind_ortvalue_output("y", ort.OrtValue(np.zeros(3, np.float32)))
    with pytest.raises(UsageError, match="does not fit the memory"):
        session.run_with_iobinding(binding)
    for bind in (binding.bind_output, lambda name: binding.bind_cpu_input(name, x)):
        with pytest.raises(UsageError, match="no input or output 'q'"):
            bind("q")


def test_values_share_memory_with_other_libraries() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    theirs = onnxruntime.OrtValue.ortvalue_from_numpy(array)
    for method in (
        *("shape", "data_type", "element_type", "data_ptr", "device_name", "has_value"),
        *("is_tensor", "is_tensor_sequence", "is_sparse_tensor", "tensor_size_in_bytes"),
    ):
        assert getattr(value, method)() == getattr(theirs, method)(), method
    assert np.shares_memory(np.from_dlpack(value), array)
    assert ort.OrtValue.from_dlpack(array).data_ptr() == array.ctypes.data
    value.update_inplace(-array)
    assert array[1, 2] == -5
    halves = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
        np.array([0x3F80], np.uint16), TensorProto.BFLOAT16
    )
    assert float(halves.numpy()[0]) == 1
    assert halves.data_type() == "tensor(bfloat16)"
    with pytest.raises(UsageError, match="no device 'cuda'"):
        ort.OrtValue.ortvalue_from_numpy(array, "cuda")


def test_runs_with_values_return_values() -> None:
    session = _session(MODEL)
    x = ort.OrtValue.ortvalue_from_numpy(np.ones((1, 4), np.float32))
    (y,) = session.run_with_ort_values(["y"], {"x": x})
    for feeds in ({"x": x}, {"x": x.numpy()}):
        np.testing.assert_array_equal(y.numpy(), session.run(None, feeds)[0])


def test_a_terminated_run_is_refused() -> None:
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(UsageError, match="terminate"):
        _session(MODEL).run(None, {"x": np.ones((1, 4), np.float32)}, options)


def test_several_threads_run_one_session() -> None:
    session = _session(MODEL)
    rows = [np.full((n, 4), n, np.float32) for n in range(1, 9)]
    expected = [session.run(None, {"x": x})[0] for x in rows]
    results: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(
            target=lambda i=i: results.update({i: session.run(None, {"x": rows[i]})[0]})
        )
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, y in results.items():
        np.testing.assert_array_equal(y, expected[i])
    assert len(results) == 8
