"""Complex inputs and outputs are pairs of real numbers in the model; callers use complex arrays."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from jax import lax

import smelt
from smelt.errors import SmeltError
from smelt.frontends.onnx import to_proto
from smelt.ir.complex_pairs import META_KEY
from smelt.runtime.interface import interface_of
from smelt.targets.saved import open_saved


def turned(x, w):
    z = x * w["w"] + 1j
    return {"abs": jnp.abs(z), "z": z}


def arrays(size: int, dtype: type = np.complex64) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    return [
        (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        for shape in ((size, 3), (3,))
    ]


@pytest.fixture(scope="module")
def model() -> ir.Model:
    return smelt.trace(turned, "c64[B,3]", {"w": "c64[3]"})


def test_complex_values_are_pairs_and_say_so(model):
    ports = [str(port) for port in interface_of(model).inputs]
    assert ports == ["float[B,3,2] (complex64[B,3])", "float[3,2] (complex64[3])"]
    ports = [str(port) for port in interface_of(model).outputs]
    assert ports == ["float[B,3]", "float[B,3,2] (complex64[B,3])"]
    assert [value.name for value in model.graph.inputs] == ["x", "w_w"]
    assert "real and imaginary parts in the last dim" in model.graph.inputs[0].doc_string
    assert "c64[B,3]" in model.graph.outputs[1].doc_string
    assert META_KEY not in model.graph.outputs[0].metadata_props


def test_a_function_without_complex_interface_is_unchanged(check):
    model = check(lambda x: jnp.abs(lax.complex(x, x)), "f32[B]")
    assert all(port.complex is None for port in interface_of(model).inputs)


FUNCTIONS = {
    "out only": (lambda x: x * 1j, "f32[B,3]"),
    "in only": (lambda z: z.real + jnp.angle(z), "c64[B,3]"),
    "returned as it came": (lambda z: z, "c64[B,3]"),
    "a number": (lambda z: z.sum(), "c64[B,3]"),
    "doubles": (lambda z: jnp.exp(z) / 3, "c128[B,3]"),
    "mapped": (jax.vmap(lambda z: z @ z.conj()), "c64[B,3]"),
    "gradient": (jax.grad(lambda z: (jnp.abs(z) ** 2).sum().real), "c64[B,3]"),
    "of the size": (lambda z: z.reshape(-1, 1)[::2] * z.shape[0], "c64[B,3]"),
    "transform": (jnp.fft.rfft, "f32[B,8]"),
    "loop": (lambda z: lax.fori_loop(0, 3, lambda i, c: c * z + i, z), "c64[B,3]"),
    "empty": (lambda z: z[:0] * 2, "c64[B,3]"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_accept_and_return_complex_arrays(name):
    fn, spec = FUNCTIONS[name]
    wide = spec.startswith("c128")
    model = smelt.trace(fn, spec, x64=wide)
    artifact = smelt.compile(model)
    for size in (1, 4):
        rng = np.random.default_rng(size)
        shape = (size, 8 if "8" in spec.partition("[")[2] else 3)
        x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        x = (
            x.real.astype(np.float32)
            if spec[0] == "f"
            else x.astype(spec.partition("[")[0][0] + ("16" if wide else "8"))
        )
        with jax.enable_x64(wide):
            expected = np.asarray(fn(jax.device_put(x)))
        (got,) = artifact(x)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    assert smelt.verify(lambda z: fn(jnp.asarray(z)), model).ok or wide


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
def test_targets_and_their_folders(model, target, tmp_path):
    x, w = arrays(4)
    expected = turned(x, {"w": w})
    artifact = smelt.compile(model, target=target, dims={"B": 4})
    artifact.save(tmp_path)
    saved = open_saved(tmp_path)
    assert [port.complex for port in saved.interface.inputs] == [ir.DataType.COMPLEX64] * 2
    for results in (artifact(x, w), list(smelt.run(tmp_path, {"x": x, "w_w": w}).values())):
        for got, name in zip(results, ("abs", "z"), strict=True):
            assert got.dtype == expected[name].dtype
            np.testing.assert_allclose(got, expected[name], rtol=2e-5)
    assert smelt.verify(lambda x, w: turned(x, {"w": w}), tmp_path).ok


def test_pairs_are_taken_too(model):
    x, w = arrays(2)
    artifact = smelt.compile(model)
    pairs = [np.stack([z.real, z.imag], -1) for z in (x, w)]
    np.testing.assert_array_equal(artifact(*pairs)[1], artifact(x, w)[1])


def test_the_mark_goes_through_files_and_passes(model, tmp_path):
    x, w = arrays(3)
    path = tmp_path / "model.onnx"
    smelt.save(model, path)
    optimized = smelt.optimize(model, pipeline="default,dedup-op-and-var-names", verify="each")
    proto = smelt.optimize(to_proto(model))
    for source in (path, smelt.load(path), optimized, proto):
        results = smelt.run(
            source if not hasattr(source, "SerializeToString") else source.SerializeToString(),
            {"x": x, "w_w": w},
        )
        assert results["out_z"].dtype == np.complex64
    assert smelt.verify(path, optimized).ok


def test_a_wrong_result_is_found(model):
    report = smelt.verify(lambda x, w: turned(x, {"w": w + 1e-3}), model)
    assert not report.ok
    assert all("out_z" in problem or "out_abs" in problem for problem in report.problems())


def test_given_complex_inputs_and_samples(model):
    x, w = arrays(2)
    plain = lambda x, w: turned(x, {"w": w})  # noqa: E731
    assert smelt.verify(plain, model, inputs=[x, w]).ok
    many = {"x": np.stack([x, x * 2]), "w_w": np.stack([w, w])}
    report = smelt.verify(model, smelt.optimize(model), samples=[many])
    assert report.ok
    assert len(report.trials) == 2


def test_an_array_of_another_precision_is_refused(model):
    x, w = arrays(2, np.complex128)
    with pytest.raises(SmeltError, match=r"complex64\[B,3\]\), not complex128\[2,3\]"):
        smelt.compile(model)(x, w)
    with pytest.raises(SmeltError, match="64-bit types are off"):
        smelt.trace(jnp.abs, "c128[3]")


def test_a_complex_output_cast_to_half_becomes_a_real_array(model):
    narrow = smelt.optimize(model, pipeline="update-output-dtypes{dtypes=out_z:float16}")
    assert interface_of(narrow).outputs[1].complex is None
    results = smelt.compile(narrow)(*arrays(2))
    assert results[1].dtype == np.float16
    assert results[1].shape == (2, 3, 2)


def test_the_last_dim_of_parts_is_not_a_channel_dim():
    with pytest.raises(SmeltError, match="parts of complex numbers"):
        smelt.trace(lambda z: z, "c64[B,4,4]", channels_first=["z"])


def test_the_interface_file_names_complex_values(model):
    artifact = smelt.compile(model, target="c", dims={"B": 4}, name="turned")
    entries = json.loads(artifact.files["turned.json"])
    assert [entry.get("complex") for entry in entries["outputs"]] == [None, True]


def test_parameters_that_become_inputs(tmp_path: Path):
    weight = jnp.asarray(arrays(1)[1])
    model = smelt.trace(lambda x: x * weight, "f32[3]", input_params=["weight"])
    assert [port.complex for port in interface_of(model).inputs] == [None, ir.DataType.COMPLEX64]
    got = smelt.compile(model)(np.ones(3, np.float32), np.asarray(weight))
    np.testing.assert_array_equal(got[0], weight)
