"""A later session runs what an earlier one compiled, as long as nothing has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import HEADER

import smelt.onnxruntime as ort
from smelt.errors import UsageError
from smelt.frontends.onnx import to_proto
from smelt.ir import text
from smelt.runtime.jit import cache_key
from smelt.runtime.jit.cache import Cache
from smelt.sessions import cached_session
from smelt.sessions.cache_entry import DOCUMENT, CacheEntry

BEFORE = 3600
"""Seconds by which files are older than the sessions that open them."""

SCALED = (
    HEADER + "g (float[B,4] x) => (float[B,4] y) <float[4] w = {{{}, 2, 3, 4}}> {{ y = Mul(x, w) }}"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SMELT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cached_session, "CLOCK", -(BEFORE * 10**9))
    return tmp_path / "cache"


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models that sessions compiled."""
    compiled: list[object] = []
    compile_for_session = cached_session.compile_for_session

    def recorded(source, options):
        compiled.append(source)
        return compile_for_session(source, options)

    monkeypatch.setattr(cached_session, "compile_for_session", recorded)
    return compiled


def _saved(path: Path, source: str) -> Path:
    onnx.save(to_proto(text.parse(source)), path)
    return path


def _session(source, **settings: object) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("smelt.engine", "native")
    for name, value in settings.items():
        setattr(options, name, value)
    return ort.InferenceSession(source, options)


def _rows(count: int) -> np.ndarray:
    return np.arange(count * 4, dtype=np.float32).reshape(count, 4)


def _run(source, count: int = 2) -> np.ndarray:
    (y,) = _session(source).run(None, {"x": _rows(count)})
    return y


def test_a_second_session_compiles_nothing(tmp_path, compiles) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    first = _run(path)
    assert len(compiles) == 1
    session = _session(path)
    again = [session.run(None, {"x": _rows(2)})[0] for _ in range(2)]
    assert session.ready()
    assert len(compiles) == 1
    for y in again:
        np.testing.assert_array_equal(y, first)
    assert not np.shares_memory(*again)
    np.testing.assert_array_equal(first, _rows(2) * [1, 2, 3, 4])


def test_a_kept_session_describes_the_model(tmp_path, compiles) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    first = _session(path)
    first.run(None, {"x": _rows(2)})
    second = _session(path)
    assert second.get_inputs() == first.get_inputs()
    assert second.get_outputs() == first.get_outputs()
    assert second.get_modelmeta() == first.get_modelmeta()
    assert len(compiles) == 1


def test_the_bytes_of_a_model_are_known_by_their_content(compiles) -> None:
    models = [to_proto(text.parse(SCALED.format(n))).SerializeToString() for n in (1, 5)]
    for _ in range(2):
        for model, factor in zip(models, (1, 5), strict=True):
            np.testing.assert_array_equal(_run(model), _rows(2) * [factor, 2, 3, 4])
    assert len(compiles) == 2


def test_other_shapes_are_compiled_and_kept_too(tmp_path, compiles) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path, 2)
    session = _session(path)
    for count in (3, 2, 3):
        (y,) = session.run(None, {"x": _rows(count)})
        np.testing.assert_array_equal(y, _rows(count) * [1, 2, 3, 4])
    assert len(compiles) == 2
    for count in (2, 3):
        _run(path, count)
    assert len(compiles) == 2


def _same_size(path: Path) -> None:
    _saved(path, SCALED.format(7))


def _replaced(path: Path) -> None:
    other = _saved(path.with_name("other.onnx"), SCALED.format(7))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [_same_size, _replaced])
def test_a_changed_file_is_compiled_again(
    tmp_path, compiles, change: Callable[[Path], None]
) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path)
    change(path)
    np.testing.assert_array_equal(_run(path), _rows(2) * [7, 2, 3, 4])
    assert len(compiles) == 2
    _run(path)
    assert len(compiles) == 2


def _with_external_weights(folder: Path, scale: float) -> Path:
    weights = (np.arange(64 * 64, dtype=np.float32) * scale).reshape(64, 64)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, 64]) for n in "xy"]
    graph = helper.make_graph(
        [node], "g", ports[:1], ports[1:], [numpy_helper.from_array(weights, "w")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(
        model, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    return folder / "m.onnx"


def test_external_weights_stay_in_their_file(tmp_path, compiles, own_cache) -> None:
    (tmp_path / "one").mkdir()
    path = _with_external_weights(tmp_path / "one", 1)
    x = np.zeros((64, 64), np.float32)
    for _ in range(2):
        (y,) = _session(path).run(None, {"x": x})
        np.testing.assert_array_equal(y.ravel(), np.arange(64 * 64))
    assert len(compiles) == 1
    assert not list(own_cache.glob("*/weights-*"))
    (path.parent / "w.bin").unlink()
    _with_external_weights(path.parent, 2)
    (y,) = _session(path).run(None, {"x": x})
    np.testing.assert_array_equal(y.ravel(), np.arange(64 * 64) * 2)
    assert len(compiles) == 2


def test_a_file_that_changes_as_it_is_opened_is_not_kept(tmp_path, compiles, monkeypatch) -> None:
    monkeypatch.setattr(cached_session, "CLOCK", 20_000_000)
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path)
    time.sleep(0.1)
    _run(path)
    _run(path)
    assert len(compiles) == 2


@pytest.mark.parametrize(
    "setting",
    [
        {"intra_op_num_threads": 2},
        {"graph_optimization_level": ort.GraphOptimizationLevel.ORT_DISABLE_ALL},
        {"dims": {"B": 2}},
        {"optimized_model_filepath": "o.onnx"},
        {"initializers": {"w": ort.OrtValue(np.full(4, 9, np.float32))}},
        {"entries": {"smelt.engine": "numpy"}},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_other_options_are_other_sessions(tmp_path, compiles, monkeypatch, setting) -> None:
    monkeypatch.chdir(tmp_path)
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path)
    (y,) = _session(path, **setting).run(None, {"x": _rows(2)})
    factors = [9] * 4 if "initializers" in setting else [1, 2, 3, 4]
    np.testing.assert_array_equal(y, _rows(2) * factors)
    assert len(compiles) == 2


def _entry(cache: Path) -> Path:
    (document,) = cache.glob(f"*/{DOCUMENT}")
    return document.parent


def _cut_weights(entry: Path) -> None:
    (weights,) = entry.glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1])


def _change_weights(entry: Path) -> None:
    (weights,) = entry.glob("weights-*")
    data = bytearray(weights.read_bytes())
    data[0] ^= 255
    weights.write_bytes(data)


def _drop_library(entry: Path) -> None:
    for library in entry.parent.glob("*/library.so"):
        library.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        _cut_weights,
        _change_weights,
        _drop_library,
        lambda entry: (entry / DOCUMENT).write_text("{}"),
        lambda entry: (entry / DOCUMENT).write_text("no JSON"),
        lambda entry: entry.chmod(0o777),
    ],
    ids=["cut weights", "other weights", "no library", "no schema", "no JSON", "others may write"],
)
def test_a_damaged_entry_is_compiled_again(tmp_path, compiles, own_cache, damage) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1.5))
    _run(path)
    damage(_entry(own_cache))
    np.testing.assert_array_equal(_run(path), _rows(2) * [1.5, 2, 3, 4])
    assert len(compiles) == 2


def test_wrong_feeds_of_a_kept_session_are_refused(tmp_path) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path)
    session = _session(path)
    for feeds, words in (
        ({"x": _rows(2).astype(np.float64)}, "double"),
        ({"x": np.ones((2, 5), np.float32)}, r"float\[2,5\]"),
        ({"x": None}, "no values"),
    ):
        with pytest.raises(UsageError, match=words):
            session.run(None, feeds)
    strided = np.repeat(_rows(2), 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(session.run(None, {"x": strided})[0], _rows(2) * [1, 2, 3, 4])


def test_large_weights_are_not_copied(tmp_path, compiles, own_cache, monkeypatch) -> None:
    monkeypatch.setattr("smelt.sessions.cache_entry.MOST_BYTES", 32)
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    for _ in range(2):
        _run(path)
    assert len(compiles) == 2
    assert not list(own_cache.glob(f"*/{DOCUMENT}"))


def test_inputs_with_defaults_and_few_bits_are_not_kept(tmp_path, compiles) -> None:
    sources = (
        "g (float[4] x, float[4] b) => (float[4] y) <float[4] b = {1,2,3,4}> { y = Add(x, b) }",
        "g (int4[4] x) => (int4[4] y) { y = Transpose<perm=[0]>(x) }",
    )
    for number, source in enumerate(sources):
        path = _saved(tmp_path / f"{number}.onnx", HEADER.replace("20", "21") + source)
        for _ in range(2):
            session = _session(path)
            dtype = np.float32 if number == 0 else onnx.helper.tensor_dtype_to_np_dtype(22)
            session.run(None, {"x": np.ones(4, dtype)})
    assert len(compiles) == 4


def test_small_floats_are_kept(tmp_path, compiles) -> None:
    path = _saved(
        tmp_path / "m.onnx",
        HEADER
        + "g (bfloat16[4] x) => (bfloat16[4] y) <bfloat16[4] w = {16256,16384,16448,16512}> { y = Mul(x, w) }",
    )
    dtype = onnx.helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    for _ in range(2):
        (y,) = _session(path).run(None, {"x": np.ones(4, dtype)})
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.astype(np.float32), [1, 2, 3, 4])
    assert len(compiles) == 1


def test_another_version_of_the_package_compiles_again(tmp_path, compiles, monkeypatch) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path)
    monkeypatch.setattr(cache_key, "package_digest", lambda: "after an update")
    _run(path)
    assert len(compiles) == 2


def test_a_full_cache_drops_entries(tmp_path, own_cache) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    _run(path)
    entry = _entry(own_cache)
    os.utime(entry, (0, 0))
    cache = Cache(limit=1)
    cache.add("newest", lambda folder: _touched(folder / "library.so"))
    assert not entry.exists()


def _touched(path: Path) -> Path:
    path.write_bytes(b"library")
    return path


def test_without_a_compiler_nothing_is_kept(tmp_path, monkeypatch) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    options = ort.SessionOptions()
    monkeypatch.setenv("CC", "no-such-compiler")
    (y,) = ort.InferenceSession(path, options).run(None, {"x": _rows(1)})
    np.testing.assert_array_equal(y, [[0, 2, 6, 12]])
    assert CacheEntry.read("nothing") is None


def test_a_fresh_process_imports_neither_the_compiler_nor_sympy(tmp_path) -> None:
    path = _saved(tmp_path / "m.onnx", SCALED.format(1))
    program = (
        "import sys, time, numpy as np, smelt.onnxruntime as ort\n"
        "from smelt.sessions import cached_session\n"
        f"cached_session.CLOCK = -{BEFORE} * 10**9\n"
        "options = ort.SessionOptions()\n"
        "options.add_session_config_entry('smelt.engine', 'native')\n"
        f"session = ort.InferenceSession({str(path)!r}, options)\n"
        "session.run(None, {'x': np.ones((2, 4), np.float32)})\n"
        "print(*(n for n in ('sympy', 'onnx_ir', 'smelt.compiler') if n in sys.modules))\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["sympy", "onnx_ir", "smelt.compiler"], []]
