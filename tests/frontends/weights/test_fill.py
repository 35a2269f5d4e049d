"""Weights without numbers: a model is traced and optimized without them, and filled by name."""

from __future__ import annotations

import functools
import json

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from flax import nnx
from jax import lax

import smelt
from smelt.errors import InvalidModel, SmeltError, UsageError

Struct = jax.ShapeDtypeStruct
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
NET = nn.Sequential([nn.Dense(16), nn.relu, nn.Dense(4)])


def flat(tree, separator=".") -> dict[str, np.ndarray]:
    """The arrays of a pytree by their paths."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        jax.tree_util.keystr(path, simple=True, separator=separator): np.asarray(leaf)
        for path, leaf in leaves
    }


def write_safetensors(path, arrays) -> None:
    """The format as its page describes it."""
    names = {"float32": "F32", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "int32": "I32"}
    header, data = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        raw = array.tobytes()
        offsets = [len(data), len(data) + len(raw)]
        kind = names[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_orbax(path, tree) -> None:
    import orbax.checkpoint as orbax

    with orbax.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(path, tree)


@pytest.fixture(scope="module")
def variables():
    return NET.init(jax.random.key(0), X)


@pytest.fixture
def abstract():
    """The model of ``NET`` with abstract weights of an argument."""
    shapes = jax.eval_shape(NET.init, jax.random.key(0), X)
    return smelt.trace(NET.apply, shapes, "f32[B,8]", weights="variables", name="net")


def gives(model, expected) -> None:
    (got,) = smelt.compile(model)(X)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_an_argument_becomes_weights_named_by_their_paths(abstract):
    assert [value.name for value in abstract.graph.inputs] == ["args_0"]
    weights = [name for name in abstract.graph.initializers if name.startswith("params")]
    assert weights == [f"params_layers_{i}_{part}" for i in (0, 2) for part in ("bias", "kernel")]


@pytest.mark.parametrize("kind", ["npz", "compressed", "safetensors", "sharded", "orbax"])
def test_checkpoints_fill_a_model_before_and_after_it_is_optimized(
    kind, abstract, variables, tmp_path
):
    arrays = flat(variables, "/")
    path = tmp_path / "weights"
    match kind:
        case "npz" | "compressed":
            path = tmp_path / "weights.npz"
            (np.savez if kind == "npz" else np.savez_compressed)(path, **arrays)
        case "safetensors":
            path = tmp_path / "weights.safetensors"
            write_safetensors(path, flat(variables["params"]))  # without what all begin with
        case "sharded":
            items = list(flat(variables).items())
            for i, part in enumerate((dict(items[:2]), dict(items[2:]))):
                write_safetensors(tmp_path / f"{i}.safetensors", part)
            path = tmp_path / "model.safetensors.index.json"
            places = {name: f"{i // 2}.safetensors" for i, (name, _) in enumerate(items)}
            path.write_text(json.dumps({"weight_map": places}))
        case _:
            write_orbax(path, variables)
    optimized = smelt.optimize(abstract)
    for model in (abstract, optimized):
        assert smelt.fill_weights(model, path) is model
        gives(model, NET.apply(variables, X))
    assert [node.op_type for node in optimized.graph] == ["Gemm", "Relu", "Gemm"]


def test_modules_of_types_are_abstract_by_themselves(variables):
    shapes = jax.eval_shape(NET.init, jax.random.key(0), X)
    linen = smelt.trace(functools.partial(NET.apply, shapes), "f32[B,8]")
    gives(smelt.fill_weights(linen, flat(variables)), NET.apply(variables, X))

    def module() -> nnx.Module:
        rngs = nnx.Rngs(0)
        return nnx.Sequential(nnx.Linear(8, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs))

    types, real = nnx.eval_shape(module), module()
    types.eval()
    real.eval()
    model = smelt.trace(types, "f32[B,8]")
    arrays = flat(nnx.to_pure_dict(nnx.state(real)))
    gives(smelt.fill_weights(model, arrays), real(X))

    make = functools.partial(eqx.nn.MLP, 8, 4, 16, 1, key=jax.random.key(0))
    model = smelt.trace(jax.vmap(eqx.filter_eval_shape(make)), "f32[B,8]")
    mlp = make()
    arrays = {name: a for name, a in flat(mlp).items() if a.dtype != object}
    gives(smelt.fill_weights(model, arrays), jax.vmap(mlp)(X))


@pytest.mark.parametrize("functions", [(), "repeated"])
def test_nothing_takes_a_weight_without_numbers_for_a_constant(functions):
    def compute(p, x):
        y = lax.dynamic_slice(x, (p["at"][0], 0), (2, 3)) @ p["w"] + x[p["at"]] @ p["w"]
        y = lax.fori_loop(0, p["count"], lambda i, y: y * p["scale"], y)
        padded = jnp.pad(y, 1) * jnp.sum(p["w"])
        chosen = lax.cond(p["count"] > 3, lambda y: y + p["w"].sum(), lambda y: y, y)
        return padded, chosen, p["w"]

    values = {
        "at": np.array([1, 2], np.int32),
        "w": np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4),
        "count": np.array(5, np.int32),
        "scale": np.array(1.1, np.float32),
        "unread": np.zeros(7, np.float32),
    }
    types = {name: Struct(array.shape, array.dtype) for name, array in values.items()}
    model = smelt.trace(
        compute, types, "f32[N,3]", weights="p", constraints=["N >= 4"], functions=functions
    )
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    expected = compute(values, x)
    optimized = smelt.optimize(model)
    assert "unread" not in model.graph.initializers
    for each in (model, optimized):
        smelt.fill_weights(each, values)
        for target in ("onnx", "host"):
            for got, want in zip(smelt.compile(each, target=target)(x), expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5)
    assert len(optimized.graph) > len(smelt.optimize(optimized).graph)  # now it folds


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("kind", ["npz", "safetensors", "orbax"])
def test_small_floats_stay_what_they_are(dtype, kind, tmp_path):
    w = np.linspace(-2, 2, 32, dtype=np.float32).reshape(8, 4).astype(dtype)
    path = tmp_path / f"w.{kind}"
    match kind:
        case "npz":
            np.savez(path, w=w)
        case "safetensors":
            write_safetensors(path, {"w": w})
        case _:
            write_orbax(path, {"w": jnp.asarray(w)})

    def compute(p, x):
        return x @ p["w"].astype(jnp.float32)

    model = smelt.trace(compute, {"w": Struct(w.shape, dtype)}, "f32[B,8]", weights="p")
    smelt.fill_weights(model, path)
    held = model.graph.initializers["w"].const_value
    assert held.dtype.numpy() == dtype
    np.testing.assert_array_equal(held.numpy().view(np.uint8), w.view(np.uint8))
    gives(model, X @ w.astype(np.float32))


def test_all_that_does_not_fit_is_listed(abstract, variables):
    arrays = flat(variables)
    arrays["params.layers_0.kernel"] = arrays["params.layers_0.kernel"].T
    arrays["params.layers_2.kernel"] = arrays["params.layers_2.kernel"].astype(np.float16)
    arrays["params.layers_2.gamma"] = arrays.pop("params.layers_2.bias")
    with pytest.raises(InvalidModel) as caught:
        smelt.fill_weights(abstract, arrays)
    assert caught.value.code == "E340"
    text = str(caught.value)
    assert "it lacks params_layers_2_bias (perhaps params.layers_2.gamma)" in text
    assert "it also has params.layers_2.gamma" in text
    assert (
        "params_layers_0_kernel is f32[8,16] in the model and f32[16,8] in the checkpoint" in text
    )
    assert (
        "params_layers_2_kernel is f32[16,4] in the model and f16[16,4] in the checkpoint" in text
    )
    for way_out in ("names={WEIGHT: NAME}", "allow_extra=True", "cast=True", "array.T"):
        assert way_out in text
    with pytest.raises(InvalidModel, match="E342"):  # nothing was filled
        smelt.save(abstract, "/dev/null")


@pytest.mark.parametrize(
    ("there", "here"),
    [(ml_dtypes.bfloat16, np.float32), (np.float32, ml_dtypes.bfloat16), (np.float64, np.float16)],
)
def test_floats_of_another_type_are_cast_on_request_only(there, here):
    w = np.linspace(-1, 1, 16).reshape(8, 2).astype(there)
    model = smelt.trace(lambda p, x: x @ p.astype("float32"), Struct((8, 2), here), "f32[B,8]",
                        weights="p")  # fmt: skip
    with pytest.raises(InvalidModel, match="cast=True"):
        smelt.fill_weights(model, {"p": w})
    smelt.fill_weights(model, {"p": w}, cast=True)
    held = model.graph.initializers["p"].const_value.numpy()
    assert held.dtype == here
    np.testing.assert_array_equal(held, w.astype(here))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (np.ones((2, 2), np.int32), "shapes or types differ"),
        (np.full((2, 2), 1e30, np.float32), "too large"),
    ],
)
def test_casts_that_would_change_numbers_are_refused(given, why):
    model = smelt.trace(lambda p, x: x @ p, Struct((2, 2), "float16"), "f16[B,2]", weights="p")
    with pytest.raises(InvalidModel, match=f"(?s)E340.*{why}"):
        smelt.fill_weights(model, {"p": given}, cast=True)


def test_an_infinity_stays_one_when_it_is_cast():
    model = smelt.trace(lambda p, x: x + p, Struct((2,), "float16"), "f16[B,2]", weights="p")
    given = np.asarray([np.inf, np.nan], np.float32)
    smelt.fill_weights(model, {"p": given}, cast=True)
    np.testing.assert_array_equal(model.graph.initializers["p"].const_value.numpy(), given)


def test_names_that_differ_are_told(abstract, variables):
    arrays = flat(variables)
    arrays["gamma"] = arrays.pop("params.layers_2.bias")
    arrays["step"] = np.zeros(1)
    names = {"params.layers_2.bias": "gamma"}  # as a path, or as the model calls it
    with pytest.raises(InvalidModel, match="the model has no weight gamma"):
        smelt.fill_weights(abstract, arrays, names={"gamma": "bias"}, allow_extra=True)
    smelt.fill_weights(abstract, arrays, names=names, allow_extra=True)
    gives(abstract, NET.apply(variables, X))


def test_models_without_weights_cannot_be_saved_compiled_or_run(abstract, tmp_path):
    path = tmp_path / "net.onnx"
    for doing, use in (
        ("saved", lambda: smelt.save(abstract, path)),
        ("saved", lambda: smelt.to_proto(abstract)),
        ("compiled", lambda: smelt.compile(abstract)),
        ("compiled", lambda: smelt.compile(abstract, target="c")),
        ("run", lambda: smelt.verify(abstract, smelt.optimize(abstract))),
    ):
        with pytest.raises(InvalidModel, match=f"E342.*cannot be {doing}: params_layers_0_bias"):
            use()
    assert not path.exists()
    assert "params_layers_0_kernel" in str(abstract.graph.initializers)


def test_mistakes_are_named(abstract, tmp_path):
    shapes = jax.eval_shape(NET.init, jax.random.key(0), X)
    (tmp_path / "cut.safetensors").write_bytes(b"\xff" * 20)
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "w.txt").write_text("kernel")
    uses = {
        "E115.*no argument.*'params'": lambda: smelt.trace(
            NET.apply, shapes, "f32[B,8]", weights="params"
        ),
        "E115.*cannot be a weight": lambda: smelt.trace(
            lambda p, x: p + x, "f32[N]", "f32[N]", weights="p"
        ),
        "E115.*no weights without numbers": lambda: smelt.fill_weights(
            smelt.trace(jnp.sin, "f32[N]"), {}
        ),
        "E609": lambda: smelt.fill_weights(abstract, tmp_path / "none"),
        "E341.*'cut.safetensors'": lambda: smelt.fill_weights(
            abstract, tmp_path / "cut.safetensors"
        ),
        "E341.*'cut.npz'": lambda: smelt.fill_weights(abstract, tmp_path / "cut.npz"),
        "E341.*is not a checkpoint": lambda: smelt.fill_weights(abstract, tmp_path / "w.txt"),
    }
    for words, use in uses.items():
        with pytest.raises(SmeltError, match=words):
            use()
    with pytest.raises(UsageError):
        smelt.fill_weights(abstract, tmp_path / "none")


def test_given_numbers_are_weights_too(variables):
    model = smelt.trace(NET.apply, variables, "f32[B,8]", weights="variables")
    assert "params_layers_0_kernel" in model.graph.initializers
    gives(model, NET.apply(variables, X))


def test_names_that_say_nothing_are_guessed_by_shape_and_type():
    shapes = {"a": Struct((8, 4), jnp.float32), "b": Struct((4,), jnp.float32)}
    model = smelt.trace(lambda w, x: x @ w["a"] + w["b"], shapes, "f32[B,8]", weights="w")
    given = {"kernel": np.ones((8, 4), np.float32), "offset": np.ones(4, np.float32)}
    with pytest.raises(InvalidModel, match=r"a \(perhaps kernel\), b \(perhaps offset\)"):
        smelt.fill_weights(model, given)


def test_turned_kernels_are_told_with_what_turns_them():
    shapes = {"kernel": Struct((8, 4), jnp.float32)}
    model = smelt.trace(lambda w, x: x @ w["kernel"], shapes, "f32[B,8]", weights="w")
    array = np.arange(32, dtype=np.float32).reshape(4, 8)
    with pytest.raises(
        InvalidModel, match=r"transposed arrays: .*f32\[8,4\].*f32\[4,8\] in the checkpoint"
    ) as raised:
        smelt.fill_weights(model, {"kernel": array})
    assert "array.T" in str(raised.value)
    smelt.fill_weights(model, {"kernel": array.T})
    np.testing.assert_allclose(smelt.compile(model)(X)[0], X @ array.T, rtol=1e-5)


def test_a_tree_of_arrays_is_named_by_its_paths():
    shapes = {"layers": [{"w": Struct((8, 4), jnp.float32)}, {"w": Struct((4, 2), jnp.float32)}]}

    def net(tree, x):
        return x @ tree["layers"][0]["w"] @ tree["layers"][1]["w"]

    tree = {"layers": [{"w": jnp.ones((8, 4))}, {"w": np.full((4, 2), 2, np.float32)}]}
    model = smelt.trace(net, shapes, "f32[B,8]", weights="tree")
    smelt.fill_weights(model, tree)
    np.testing.assert_allclose(smelt.compile(model)(X)[0], net(tree, X), rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "why"), [({"w": "text"}, "type is str"), ([1], "list is"), (None, "NoneType is")]
)
def test_other_objects_than_checkpoints_are_refused(given, why):
    model = smelt.trace(lambda w, x: x @ w, Struct((8, 2), "float32"), "f32[B,8]", weights="w")
    with pytest.raises(InvalidModel, match=f"(?s)E341.*{why}"):
        smelt.fill_weights(model, given)


def test_steps_of_a_manager_of_checkpoints_are_read_and_named(tmp_path, variables):
    import orbax.checkpoint as orbax

    parts = {"weights": orbax.args.StandardSave(variables), "notes": orbax.args.JsonSave({"a": 1})}
    with orbax.CheckpointManager(tmp_path / "run") as manager:
        manager.save(3, args=orbax.args.Composite(**parts))
        manager.wait_until_finished()
    shapes = jax.eval_shape(NET.init, jax.random.key(0), X)
    model = smelt.trace(NET.apply, shapes, "f32[B,8]", weights="variables")
    with pytest.raises(
        InvalidModel, match=r"(?s)E341.*a checkpoint manager of orbax wrote the steps 3.*run/3"
    ):
        smelt.fill_weights(model, tmp_path / "run")
    smelt.fill_weights(model, tmp_path / "run" / "3")
    np.testing.assert_allclose(smelt.compile(model)(X)[0], NET.apply(variables, X), rtol=1e-4)
