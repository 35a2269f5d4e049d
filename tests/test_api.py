"""The public API: what it imports, what it returns, and that it repeats itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text

MODEL = (
    "g (float[B,4] x) => (float[B,4] y) <float one = {1}> { a = Mul(x, one) b = Neg(a) y = Neg(b) }"
)


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
        timeout=120,
    )
    return done.stdout.strip()


def test_importing_costs_nothing_that_is_not_needed() -> None:
    heavy = run_python(
        "import sys, time; t = time.process_time(); import smelt; t = time.process_time() - t;"
        "print([m for m in ('jax', 'torch', 'onnxruntime', 'onnx', 'onnx_ir', 'scipy') if m in sys.modules], t < 0.3)"
    )
    assert heavy == "[] True"


def test_every_public_name_loads() -> None:
    for name in smelt.__all__:
        assert getattr(smelt, name) is not None
    with pytest.raises(AttributeError):
        _ = smelt.nothing


def test_optimize_returns_a_proto_only_for_a_proto(tmp_path: Path) -> None:
    model = text.parse(MODEL)
    optimized = smelt.optimize(model)
    assert isinstance(optimized, ir.Model)
    assert len(model.graph) == 3
    proto = smelt.to_proto(model)
    assert isinstance(smelt.optimize(proto), onnx.ModelProto)
    path = smelt.save(model, tmp_path / "m.onnx")
    assert isinstance(smelt.optimize(path), ir.Model)


def test_the_interface_is_kept_even_if_a_model_does_nothing() -> None:
    optimized = smelt.optimize(text.parse(MODEL))
    assert text.canonical(optimized) == (
        "(float[B,4] x) => (float[B,4] y=%0) {\n  %0 = Identity(x)\n}\n"
    )


@pytest.mark.parametrize("verify", ["final", "each"])
def test_optimizing_with_proof(verify: str) -> None:
    optimized = smelt.optimize(text.parse(MODEL), verify=verify, dims={"B": (1, 3)})
    assert smelt.verify(text.parse(MODEL), optimized).ok


def test_compiling_and_running_an_artifact(tmp_path: Path) -> None:
    artifact = smelt.compile(text.parse(MODEL), target="host")
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(artifact(x)[0], x)
    artifact = smelt.compile(text.parse(MODEL), target="onnx", name="mine")
    assert [path.name for path in artifact.save(tmp_path)] == ["mine.onnx"]


def test_options_are_checked() -> None:
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.optimize(text.parse(MODEL), verify="maybe")
    assert caught.value.code == "E607"
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.compile(text.parse(MODEL), "f32[4]", target="onnx")
    assert caught.value.code == "E608"


DIGEST = """
import hashlib, smelt
from pathlib import Path
import onnx
light = Path(onnx.__file__).parent / "backend/test/data/light/light_shufflenet.onnx"
model = smelt.optimize(light)
print(hashlib.sha256(smelt.to_proto(model).SerializeToString(deterministic=True)).hexdigest())
"""


def test_output_is_the_same_under_any_hash_seed() -> None:
    digests = {run_python(DIGEST, PYTHONHASHSEED=seed) for seed in ("0", "1")}
    assert len(digests) == 1
