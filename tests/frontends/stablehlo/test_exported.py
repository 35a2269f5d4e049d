"""Functions of ``jax.export`` become models with equal results at every size and their names."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import export, lax
from whole_models.catalogue import MODELS
from whole_models.judging import assert_computes_the_same

import smelt
from smelt.errors import SmeltError, Unsupported
from smelt.frontends.jax.call import specs

Struct = partial(jax.ShapeDtypeStruct, dtype=jnp.float32)


def exported(fn, *structs, **options):
    return export.export(jax.jit(fn), **options)(*structs)


def symbolic(*dims, constraints=()):
    (size,) = export.symbolic_shape("B", constraints=constraints)
    return Struct(tuple(size if dim == "B" else dim for dim in dims))


def drawn(struct, size, seed=0):
    shape = [dim if isinstance(dim, int) else size for dim in struct.shape]
    return np.random.default_rng(seed).standard_normal(shape).astype(struct.dtype)


def agree(fn, *structs, sizes=(1, 3), **tolerance):
    """Assert that the exported ``fn``, compiled by smelt, has the results of ``fn``."""
    model = smelt.trace(exported(fn, *structs))
    run = smelt.compile(model)
    for size in sizes:
        arrays = [drawn(struct, size, seed) for seed, struct in enumerate(structs)]
        with jax.enable_x64(False):
            expected = jax.tree.leaves(jax.jit(fn)(*arrays))
        for got, want in zip(run(*arrays), expected, strict=True):
            want = np.asarray(want)  # noqa: PLW2901
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(
                got.astype(np.float32),
                want.astype(np.float32),
                **{"rtol": 1e-5, "atol": 1e-5, **tolerance},
            )
    return model


def scaled(params, x, *, shift):
    return {"out": x @ params["w"] + shift}


SCALED = ({"w": Struct((4, 2))}, Struct((3, 4)))


@pytest.mark.parametrize("kind", ["exported", "bytes", "file", "called", "callee"])
def test_every_form_of_an_export_converts(kind, tmp_path):
    given = export.export(jax.jit(scaled))(*SCALED, shift=Struct((2,)))
    path = tmp_path / "scaled.jaxexport"
    path.write_bytes(given.serialize())
    arrays = [drawn(struct, 3, i) for i, struct in enumerate((SCALED[0]["w"], SCALED[1]))]
    arrays.append(np.float32([1, 2]))
    source = {"exported": given, "bytes": bytes(given.serialize()), "file": path}.get(kind)
    if source is not None:
        model = smelt.trace(source)
        assert [value.name for value in model.graph.inputs] == ["params_w", "x", "shift"]
        assert [value.name for value in model.graph.outputs] == ["out_out"]
        run = smelt.compile(source)
    else:

        def inside(w, x, shift):
            call = given.call if kind == "callee" else jax.jit(given.call)
            return call({"w": w}, x, shift=shift)["out"] * 2

        run = smelt.compile(inside, "f32[4,2]", "f32[3,4]", "f32[2]")
    factor = 2 if source is None else 1
    expected = factor * (arrays[1] @ arrays[0] + arrays[2])
    np.testing.assert_allclose(run(*arrays)[0], expected, rtol=1e-5)


def test_the_command_line_takes_a_file(tmp_path):
    from typer.testing import CliRunner

    from smelt.cli.main import app

    path, out = tmp_path / "f.bin", tmp_path / "f.onnx"
    path.write_bytes(exported(jnp.tanh, symbolic("B", 4)).serialize())
    for command in (
        ("convert", str(path), "-o", str(out)),
        ("compile", str(path), "-o", str(out.parent)),
    ):
        result = CliRunner().invoke(app, [*command])
        assert result.exit_code == 0, result.output
    assert [node.op_type for node in smelt.load(out).graph] == ["Tanh"]


def mix(x, w):
    y = jax.nn.softmax(x @ w)
    carried, rows = lax.scan(lambda c, row: (c + row.sum(), c * row), 0.0, y)
    return {
        "sums": (y.sum(0), y.max(1), y.min(), jnp.prod(y + 1, 1), (y > 0.2).any(0), carried),
        "argmax": (jnp.argmax(y, 1), jnp.argmin(y, 1), jnp.cumsum(y, 0), jnp.cumsum(y, 1)),
        "sorted": (jnp.sort(y, 1), jnp.argsort(-y, 1), lax.top_k(y, 2)),
        "moved": (y[::-1, 1:3], y.reshape(-1), jnp.concatenate([y, y * 2]), jnp.pad(y, 1)),
        "placed": (y.at[0].set(1.0), y.at[:, 1].add(2.0), y[jnp.array([0, 0])], y[:, 1:2]),
        "branches": (
            lax.cond(y.sum() > 0, lambda a: a * 2, lambda a: a, y),
            lax.switch(jnp.int32(y.sum()), [lambda a: a, lambda a: -a], y),
            lax.fori_loop(0, 3, lambda i, a: a * 2 + i, y),
            lax.while_loop(lambda a: a.sum() < 99, lambda a: a * 3 + 1, y),
            rows,
        ),
        "special": (lax.erf(y), lax.lgamma(y + 1), jnp.arccosh(y + 2), jax.nn.gelu(y)),
        "size": (jnp.mean(y) * y.shape[0], jnp.asarray(y.shape[0])),
    }


@pytest.mark.parametrize("structs", [(Struct((3, 8)), Struct((8, 4)))], ids=["static"])
def test_operators_of_all_kinds(structs):
    agree(mix, *structs, sizes=(3,))


@pytest.mark.slow
def test_operators_of_all_kinds_at_symbolic_sizes():
    agree(mix, symbolic("B", 8), Struct((8, 4)), sizes=(1, 5))


def test_arithmetic_of_symbolic_sizes():
    def halves(x):
        n = x.shape[0]
        cut = x[: (n + 1) // 2]
        at = lax.dynamic_slice(x, (jnp.int32(x[0, 0] > 9), 0), (n // 2, 3))
        return cut, x[::2], jnp.arange(2 * n), at, jnp.tile(x, (2, 1)), x.reshape(-1, 1)

    model = agree(halves, symbolic("B", 3, constraints=["B >= 2"]), sizes=(2, 5))
    assert str(model.graph.outputs[2].shape) == "[2*B]"


def test_convolutions_pooling_and_their_gradients():
    def images(x, w):
        dims = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=dims)
        z = lax.conv_transpose(x, w, (2, 2), "SAME")

        def pooled(a):
            return lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

        mean = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")
        return y, z, pooled(x), mean, jax.grad(lambda a: (pooled(a) ** 2).sum())(x)

    agree(images, symbolic("B", 8, 6, 3), Struct((3, 3, 3, 5)), atol=1e-4)


@pytest.mark.slow
def test_strided_convolutions_of_open_sizes():
    """The pads depend on the sizes, by divisions of negative numbers that round down."""
    kernel = np.random.default_rng(3).standard_normal((3, 2, 2, 4)).astype(np.float32)

    def fn(x):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (2, 3), "SAME", dimension_numbers=numbers)

    agree(fn, symbolic(1, "B", "B", 2), sizes=(1, 5, 8))


def test_linear_algebra():
    def solved(a, b):
        s = a @ a.mT + 5 * jnp.eye(4)
        q, r = jnp.linalg.qr(a)
        return (
            jnp.linalg.cholesky(s),
            jnp.linalg.solve(s, b),
            jnp.linalg.inv(s),
            jnp.linalg.det(s),
            q @ r,
            jnp.linalg.svd(a)[1],
            jnp.linalg.eigh(s)[0],
            jax.scipy.linalg.solve_triangular(s, b, lower=True),
        )

    agree(solved, Struct((2, 4, 4)), Struct((2, 4, 1)), sizes=(2,), atol=2e-4, rtol=2e-4)


def test_types_and_constants():
    table = np.linspace(-3, 3, 8).astype(ml_dtypes.bfloat16)
    large = np.linspace(-3, 3, 500).astype(ml_dtypes.bfloat16)
    odd = np.array([np.inf, -np.inf, -0.0, 1.5], ml_dtypes.bfloat16)

    def typed(x):
        small = (x[:, :8].astype(jnp.bfloat16) * 0).astype(jnp.float32)
        return (
            small + jnp.asarray(table).astype(jnp.float32),
            jnp.asarray(large).astype(jnp.float32),
            jnp.asarray(odd).astype(jnp.float32),
            x > jnp.array([True, False] * 4),
            lax.bitcast_convert_type(x, jnp.int32) >> 3,
            jnp.asarray([7, -7], jnp.int8),
        )

    agree(typed, symbolic("B", 8))


def test_random_numbers_of_a_fixed_key_equal_those_of_jax():
    agree(lambda x: x + jax.random.uniform(jax.random.key(3), x.shape), symbolic("B", 4))


def test_an_exported_function_that_is_called_may_compute_with_64_bits():
    def draw(x):
        return x + jax.random.normal(jax.random.key(3), x.shape)

    given = exported(draw, symbolic("B", 4))
    run = smelt.compile(lambda x: given.call(x * 2), "f32[B,4]")
    for size in (1, 5):
        x = np.ones((size, 4), np.float32)
        np.testing.assert_allclose(run(x)[0], draw(x * 2), rtol=1e-5)


def test_the_index_of_the_last_maximum_is_not_read_as_argmax():
    def last(x):
        def later(a, b):
            (left, i), (right, j) = a, b
            first = (left > right) | jnp.isnan(left) | ((left == right) & (i > j))
            return (
                jnp.where((left > right) | jnp.isnan(left), left, right),
                jnp.where(first, i, j),
            )

        places = lax.broadcasted_iota(jnp.int32, x.shape, 1)
        return lax.reduce((x, places), (-jnp.inf, jnp.int32(-1)), later, (1,))[1]

    given = exported(last, Struct((2, 3)))
    x = np.float32([[1, 1, 0], [2, 3, 3]])
    try:
        found = smelt.compile(given)(x)[0]
    except SmeltError as error:
        assert error.code.startswith("E1")  # noqa: PT017 - either is right, the first place is not
    else:
        np.testing.assert_array_equal(found, [1, 2])


def test_64_bit_types_stay():
    with jax.enable_x64(True):
        given = export.export(jax.jit(lambda x: x + 1e-12))(jax.ShapeDtypeStruct((2,), "float64"))
    (got,) = smelt.compile(given)(np.zeros(2))
    np.testing.assert_array_equal(got, np.full(2, 1e-12))


def test_an_export_for_several_platforms_runs_as_on_a_cpu():
    given = exported(jnp.sin, Struct((3,)), platforms=("tpu", "cpu"))
    x = np.float32([1, 2, 3])
    np.testing.assert_allclose(smelt.compile(given)(x)[0], np.sin(x), rtol=1e-6)


def test_errors_name_unsupported_operations_and_their_source_line():
    bits = exported(
        lambda x: lax.rng_bit_generator(x, (3,))[1], jax.ShapeDtypeStruct((4,), "uint32")
    )
    with pytest.raises(Unsupported, match=r"E101.*rng_bit.*\n.*test_exported.py:\d+ in <lambda>"):
        smelt.trace(bits)
    small = jnp.ones((3, 2)).astype(jnp.int2)
    given = exported(lambda x: x @ small.astype(jnp.float32), Struct((3, 3)))
    with pytest.raises(Unsupported, match=r"E102.*\n.*test_exported.py:\d+ in <lambda>"):
        smelt.trace(given)
    broken = bytearray(exported(jnp.sin, Struct((3,))).serialize())
    with pytest.raises(SmeltError, match="E302"):
        smelt.trace(bytes(broken[:300]))
    with pytest.raises(SmeltError, match=r"E302 these bytes are not an exported function"):
        smelt.trace(bytes(broken[:8]))


MODEL_NAMES = sorted(set(MODELS) - {"lstm_nnx"})
"""JAX itself cannot export ``lstm_nnx``."""

QUICK = {"ppo", "lstm_linen"}


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MODEL_NAMES],
)
def test_whole_models_are_exported_and_read_back(name):
    model = MODELS[name]()
    structs, _ = specs.resolve(model.specs, model.constraints, model.x64)
    with jax.enable_x64(model.x64):
        given = export.export(jax.jit(model.function))(*structs)
    assert_computes_the_same(model, [smelt.optimize(smelt.trace(given))])
