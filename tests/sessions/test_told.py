"""What sessions tell, compute and refuse stands in ``told.txt``, read when an entry changes.

A row is an expression over the names below: ``opened(graph)`` is a session of ``MODELS`` or of the
text of a graph, ``bound`` binds and runs one, ``logged`` tells what options log.
``PYTHONPATH=src:tests python tests/sessions/test_told.py`` writes the entries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import parsed, rows, told, write

import smelt.onnxruntime as ort
from smelt.frontends.onnx import to_proto
from smelt.sessions import process
from smelt.sessions.value import OrtValue

TABLE = Path(__file__).with_name("told.txt")
MODELS = {
    "sum": "opset 20: (float[N,3] x, float[3] b) => (float[N,3] y, float[N,3] z) { y = Add(x, b) z = Mul(x, b) }",
    "default": "opset 20: (float[2] x, float[2] b) => (float[2] y) <float[2] b = {5, 6}> { y = Add(x, b) }",
    "weights": "opset 20: (float[2] x) => (float[2] y) <float[2] w = {5, 6}> { y = Mul(x, w) }",
    "optional": "opset 18: (optional(float[2]) o) => (bool h) { h = OptionalHasElement(o) }",
    "sequence": "opset 20: (float[2] x) => (seq(float[2]) s, int64 n) { s = SequenceConstruct(x, x) n = SequenceLength(s) }",
    "unnamed": "opset 20: (float[?,2] x, int64 i, bool[3] c, float16[2] h) => (float[?,2] y, int64 j, bool[3] d, float16[2] g) { y = Neg(x) j = Neg(i) d = Not(c) g = Neg(h) }",
    "strings": "opset 20: (string[2] x) => (string[2] y) { y = StringConcat(x, x) }",
}


def opened(name: str, **fields: Any) -> ort.InferenceSession:
    """Return the session of a model, with options by their names."""
    options = ort.SessionOptions()
    options.add_session_config_entry("smelt.engine", "numpy")
    for key, value in fields.items():
        setattr(options, key, value)
    model = to_proto(parsed(MODELS.get(name, name))).SerializeToString()
    return ort.InferenceSession(model, options)


def described(name: str, **fields: Any) -> list[Any]:
    """Return all that a session tells about its model."""
    session = opened(name, **fields)
    ports = (*session.get_inputs(), *session.get_outputs(), *session.get_overridable_initializers())
    return [*map(str, ports), session.get_modelmeta(), session.get_providers()]


def floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return an array of 0, 1, 2 and so on."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def ran(name: str, *names: str, **feeds: Any) -> list[Any]:
    """Return the outputs ``names`` of a run, in both ways to run."""
    session = opened(name)
    outputs = list(names) or None
    values = session.run_with_ort_values(outputs, feeds)
    kinds = [
        (v.data_type(), v.has_value(), v.is_tensor(), v.is_tensor_sequence(), v.is_sparse_tensor())
        for v in values
    ]
    return [session.run(outputs, feeds), kinds]


def bound(name: str, *steps: Callable[[Any], Any]) -> list[Any]:
    """Return what each step makes of a binding, then the results of a run with it."""
    session = opened(name)
    binding = session.io_binding()
    told = [step(binding) for step in steps]
    session.run_with_iobinding(binding)
    results = binding.copy_outputs_to_cpu()
    kept = binding.get_outputs()
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    return [told, results, [each.shape() for each in kept], binding.inputs, binding.get_outputs()]


def answered(name: str, *names: str, **feeds: Any) -> list[Any]:
    """Return what the callback of ``run_async`` receives."""
    session, seen = opened(name), list[Any]()
    session.run_async(list(names), feeds, lambda *given: seen.extend(given), "data")
    session._threads.shutdown(wait=True)
    return seen


@contextmanager
def _log() -> Iterator[list[str]]:
    """Collect what is logged, as if nothing was logged before in this process."""
    lines: list[str] = []
    said, warning = set(process._said), process.LOG.warning
    process._said.clear()
    process.LOG.warning = lines.append  # type: ignore[method-assign, assignment]
    try:
        yield lines
    finally:
        process.LOG.warning = warning  # type: ignore[method-assign]
        process._said.update(said)


def logged(name: str, least: int = 2, times: int = 1, entry: str = "", **fields: Any) -> list[str]:
    """Return what is logged when a session opens with options, or with a provider."""
    with _log() as lines:
        ort.set_default_logger_severity(least)
        try:
            for _ in range(times):
                more = {key: fields.pop(key) for key in ("providers", "extra") if key in fields}
                options = ort.SessionOptions()
                options.add_session_config_entry("smelt.engine", "numpy")
                if entry:
                    options.add_session_config_entry(entry, "1")
                for key, value in fields.items():
                    setattr(options, key, value)
                model = to_proto(parsed(MODELS[name])).SerializeToString()
                ort.InferenceSession(model, options, **more)
        finally:
            ort.set_default_logger_severity(process.WARNING)
    return lines


def options_with(**fields: Any) -> ort.SessionOptions:
    """Return options with fields by name."""
    options = ort.SessionOptions()
    for key, value in fields.items():
        setattr(options, key, value)
    return options


NAMES = {
    each.__name__: each
    for each in (opened, described, floats, ran, bound, answered, logged, options_with)
} | {"ort": ort, "np": np, "OrtValue": OrtValue}


def entry(row: str) -> str:
    """Return the entry of a row."""
    return told(row, NAMES)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_sessions_tell_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/sessions/test_told.py"


if __name__ == "__main__":
    write(TABLE, entry)
