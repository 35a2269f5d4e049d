"""Fourier transforms, of every length and over several dims."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

import smelt

QUICK = [1, 2, 3, 5, 8, 30, 64, 65, 97, 128, 210, 521, 1024]
LENGTHS = [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 7, 16, 63, 100, 1000))]


def parts(z):
    return jnp.stack([z.real, z.imag], -1)


def packed(fn):
    return lambda x: parts(fn(lax.complex(x[..., 0], x[..., 1])))


@pytest.mark.parametrize("size", LENGTHS)
def test_every_length(check, size):
    near = {"rtol": 1e-4, "atol": 2e-6 * size + 1e-5}
    check(packed(jnp.fft.fft), f"f32[2,{size},2]", **near)
    check(packed(jnp.fft.ifft), f"f32[2,{size},2]", rtol=1e-4, atol=1e-5)
    check(lambda x: parts(jnp.fft.rfft(x)), f"f32[2,{size}]", **near)
    check(
        lambda x: jnp.fft.irfft(lax.complex(x[..., 0], x[..., 1]), n=size),
        f"f32[2,{size // 2 + 1},2]", rtol=1e-4, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("size", [6, 65, 521, 1024])
def test_doubles(check, size):
    check(packed(jnp.fft.fft), f"f64[2,{size},2]", x64=True, rtol=1e-9, atol=1e-10)
    check(lambda x: parts(jnp.fft.rfft(x)), f"f64[2,{size}]", x64=True, rtol=1e-9, atol=1e-10)


FUNCTIONS = {
    "fft axis": packed(lambda z: jnp.fft.fft(z, axis=0)),
    "fft cut": packed(lambda z: jnp.fft.fft(z, n=4)),
    "fft grown": packed(lambda z: jnp.fft.fft(z, n=9)),
    "fft ortho": packed(lambda z: jnp.fft.fft(z, norm="ortho")),
    "ifft forward": packed(lambda z: jnp.fft.ifft(z, norm="forward")),
    "fft2": packed(jnp.fft.fft2),
    "ifft2": packed(jnp.fft.ifft2),
    "fftn": packed(jnp.fft.fftn),
    "ifftn": packed(jnp.fft.ifftn),
    "fftshift": packed(jnp.fft.fftshift),
    "ifftshift": packed(jnp.fft.ifftshift),
    "rfft2": lambda x: parts(jnp.fft.rfft2(x[..., 0])),
    "rfftn": lambda x: parts(jnp.fft.rfftn(x)),
    "irfft2": lambda x: jnp.fft.irfft2(lax.complex(x[..., 0], x[..., 1])),
    "irfftn": lambda x: jnp.fft.irfftn(lax.complex(x[..., 0], x[..., 1]), s=(3, 4, 9)),
    "hfft": lambda x: jnp.fft.hfft(lax.complex(x[..., 0], x[..., 1])),
    "ihfft": lambda x: parts(jnp.fft.ihfft(x)),
    "real input": lambda x: parts(jnp.fft.fft(x, axis=1)),
    "frequencies": lambda x: x[0, 0, 0, 0] * jnp.fft.fftfreq(9) + jnp.fft.rfftfreq(17),
}


@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_of_jax_numpy_fft(check, fn):
    check(fn, "f32[3,4,6,2]", rtol=1e-4, atol=5e-5)


def test_a_batch_of_unknown_size(check):
    check(packed(jnp.fft.fft2), "f32[B,4,100,2]", rtol=1e-4, atol=1e-3)


def test_a_length_that_is_not_known(check):
    sizes = ({"S": 5}, {"S": 8})
    check(packed(jnp.fft.fft), "f32[2,S,2]", sizes=sizes, rtol=1e-4, atol=1e-4)
    check(
        packed(lambda z: jnp.fft.ifft(z, axis=0)), "f32[S,3,2]", sizes=sizes, rtol=1e-4, atol=1e-4
    )
    check(lambda x: parts(jnp.fft.rfft(x)), "f32[2,S]", sizes=sizes, rtol=1e-4, atol=1e-4)


def test_ends_of_a_real_spectrum_count_as_real(check):
    for size in (6, 7, 130, 131):
        fn = lambda x, n=size: jnp.fft.irfft(lax.complex(x, x + 1), n=n)  # noqa: E731
        check(fn, f"f32[{size // 2 + 1}]", rtol=1e-4, atol=1e-5)


def test_convolution_by_transforms(check):
    check(jax.scipy.signal.fftconvolve, "f32[50]", "f32[17]", rtol=1e-4, atol=1e-4)


def test_derivative(check):
    check(
        jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 3).sum()), "f32[12]", rtol=1e-3, atol=1e-2
    )


def test_large_values_keep_their_relative_error(check):
    x = np.zeros((1, 100, 2), np.float32)
    x[0, 3] = 1e30, -1e30
    check(packed(jnp.fft.fft), "f32[1,100,2]", inputs=[[x]], rtol=1e-4, atol=1e25)


TARGETS = {
    "compiled": {"target": "host", "engine": "native"},
    "numpy": {"target": "host", "engine": "numpy"},
}


def agree(fn, spec, shape, options, x64=False):
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape).astype(np.float64 if x64 else np.float32)
    artifact = smelt.compile(fn, spec, x64=x64, **options)
    with jax.enable_x64(x64):
        expected = [np.asarray(leaf) for leaf in jax.tree.leaves(fn(jax.device_put(x)))]
    for got, want in zip(artifact(x), expected, strict=True):
        atol = (1e-12 if x64 else 5e-6) * np.abs(want).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol=0, atol=atol)
    return [node.op_type for node in artifact.model.graph]


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(
    "size", [1, 97, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5, 64, 100, 521, 1024))]
)
def test_host_computes_transforms_as_such(size, options):
    """All in one artifact, which is compiled to C once."""

    def transforms(x):
        z = lax.complex(x[..., 0], x[..., 1])
        inverse = [jnp.fft.irfft(z, n=n) for n in (2 * size - 1, 2 * size)]
        return *map(parts, (jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(x[..., 0]))), *inverse

    nodes = agree(transforms, f"f32[3,{size},2]", (3, size, 2), options)
    assert nodes.count("DFT") == 5


@pytest.mark.parametrize("options", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("dtype", sampled(["f32", "f64"], 2))
def test_host_and_functions_of_jax_numpy_fft(dtype, options):
    """All in one artifact, which is compiled to C once."""
    every = lambda x: [fn(x) for fn in FUNCTIONS.values()]  # noqa: E731
    agree(every, f"{dtype}[3,4,6,2]", (3, 4, 6, 2), options, x64=dtype == "f64")


def test_host_transforms_any_axis_without_a_transpose():
    fn = packed(lambda z: jnp.fft.fft(z, axis=0))
    nodes = agree(fn, "f32[40,5,2]", (40, 5, 2), TARGETS["compiled"])
    assert "DFT" in nodes
    assert "Transpose" not in nodes


def test_derivatives_and_batches_on_host():
    def power(x):
        return (jnp.abs(jnp.fft.rfft(x, axis=1)) ** 2).sum()

    agree(jax.grad(power), "f32[3,30]", (3, 30), TARGETS["compiled"])
    agree(jax.vmap(power), "f32[B,3,30]", (4, 3, 30), TARGETS["compiled"])
    agree(packed(jnp.fft.fft), "f32[B,30,2]", (0, 30, 2), TARGETS["compiled"])


def test_other_targets_use_matrix_products():
    """Matrix products replace DFT for runtimes, below opset 20, and for unknown lengths."""
    fn, spec = packed(jnp.fft.fft), "f32[2,100,2]"
    for artifact in (
        smelt.compile(fn, spec),
        smelt.compile(fn, spec, target="ort"),
        smelt.compile(fn, spec, target="host", opset=19),
        smelt.compile(fn, "f32[2,N,2]", target="host"),
    ):
        assert "DFT" not in {node.op_type for node in artifact.model.graph}


def test_targets_do_not_share_cached_traces():
    """JAX caches its trace of ``jnp.fft.fft``, and smelt caches the converted jaxpr."""
    for target in ("host", "onnx", "host", "ort"):
        artifact = smelt.compile(jnp.fft.fft, "c64[8,100]", target=target)
        found = "DFT" in {node.op_type for node in artifact.model.graph}
        assert found == (target == "host")
