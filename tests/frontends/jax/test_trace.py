"""``trace``: the specs that it accepts, the names of inputs and outputs, and its errors."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from flax import nnx
from jax.experimental import io_callback

from smelt.compiler import compile_model
from smelt.errors import ErrorList, SmeltError, UsageError
from smelt.frontends.jax import trace
from smelt.ir.provenance import origin_of
from smelt.ir.text import canonical


def interface(model: ir.Model) -> tuple[list[str], list[str]]:
    def show(values):
        return [f"{v.name} {v.dtype.name}[{','.join(map(str, v.shape.dims))}]" for v in values]

    return show(model.graph.inputs), show(model.graph.outputs)


def test_pytrees_in_and_out_are_named_by_their_paths(check):
    def fn(batch, scale, *more):
        return {"logits": batch["image"] * scale, "pair": (more[0], more[1] + 1)}

    specs = ({"image": "f32[B,4]", "mask": "bool[B]"}, "f32[]", "i32[3]", "i32[3]")
    model = check(fn, *specs)
    assert interface(model) == (
        [
            "batch_image FLOAT[B,4]",
            "batch_mask BOOL[B]",
            "scale FLOAT[]",
            "more_0 INT32[3]",
            "more_1 INT32[3]",
        ],
        ["out_logits FLOAT[B,4]", "out_pair_0 INT32[3]", "out_pair_1 INT32[3]"],
    )


def test_names_never_clash(check):
    check(lambda out, val_3, const_0: (out + val_3 * 2, const_0 - out), *["f32[2]"] * 3)
    model = trace(lambda out: out + 1, "f32[2]")
    assert [model.graph.inputs[0].name, model.graph.outputs[0].name] == ["out", "out_2"]


def test_specs_may_be_arrays_and_structs(check):
    check(lambda a, b: a + b, np.ones((2, 3), np.float32), jax.ShapeDtypeStruct((2, 3), "f4"))
    model = trace(
        lambda a, c: a.sum() + c, np.ones(3, np.float32), jax.ShapeDtypeStruct(("B", 3), "f4")
    )
    assert interface(model)[0] == ["a FLOAT[3]", "c FLOAT[B,3]"]


def test_outputs_that_are_inputs_constants_or_equal(check):
    check(lambda x: (x, x, jnp.ones(2), 3.0, x + 1, x + 1), "f32[2]")
    y = jnp.arange(3.0)
    check(lambda x: (y, y, x), "f32[2]")


def test_a_function_of_nothing_and_one_that_ignores_its_input(check):
    check(lambda: jnp.ones(3) * 2, inputs=[[]])
    model = check(lambda x, unused: x * 2, "f32[2]", "f32[5]")
    assert len(model.graph.inputs) == 2


def test_64_bits_are_on_for_the_trace_only(check):
    check(lambda x, i: (x * 2 + jnp.arange(3), i + 1), "f64[3]", "i64[]", x64=True)
    assert jnp.arange(3).dtype == jnp.int32
    with pytest.raises(UsageError) as caught:
        trace(lambda x: x, "f64[3]")
    assert caught.value.code == "E104"
    assert "x64=True" in caught.value.fix


def test_64_bit_types_are_as_jax_is_configured():
    def model(**options):
        return trace(lambda x: x + jnp.arange(3.0), "f32[3]", **options)

    with jax.enable_x64(True):
        assert model().graph.outputs[0].dtype == ir.DataType.DOUBLE
        assert model(x64=False).graph.outputs[0].dtype == ir.DataType.FLOAT
        assert compile_model(jnp.sin, "f64[2]", target="host")(np.ones(2))[0].dtype == np.float64
    assert model().graph.outputs[0].dtype == ir.DataType.FLOAT
    assert model(x64=True).graph.outputs[0].dtype == ir.DataType.DOUBLE


def test_symbols_with_constraints(check):
    fn = lambda x: x.reshape(x.shape[0] // 2, 2, -1).sum(1)  # noqa: E731
    check(fn, "f32[S,3]", constraints=("S % 2 == 0", "S >= 2"), sizes=({"S": 2}, {"S": 8}))
    check(lambda x: x[:2], "f32[S]", constraints=("S >= 2",))


def test_sizes_are_solved_from_expressions(check):
    check(lambda x: x + x.shape[0], "f32[2*B,3]")
    check(
        lambda x, y: x.sum() + y.shape[0] * jnp.ones(x.shape[0] - y.shape[0]),
        "f32[2*B+S]",
        "f32[S]",
    )
    with pytest.raises(SmeltError) as caught:
        trace(lambda x: x * x.shape[0] + jnp.arange(x.shape[0] * 2).sum(), "f32[B*B]")
    assert caught.value.code == "E103"


def test_everything_unsupported_is_reported_at_once():
    def fn(x):
        y = jax.pure_callback(np.sin, x, x)
        z = jax.lax.cond(x[0, 0] > 0, lambda x: io_callback(np.cos, x, x), lambda x: x, x)
        return y, z, jax.pure_callback(np.tan, z, z)

    with pytest.raises(ErrorList) as caught:
        trace(fn, "f32[3,3]")
    text = str(caught.value)
    assert {error.code for error in caught.value.errors} == {"E101"}
    assert "primitive 'pure_callback' has no ONNX lowering, met 2 times" in text
    assert "primitive 'io_callback' has no ONNX lowering" in text
    assert "test_trace.py" in text
    assert "fn" in text
    assert "a model cannot run Python" in text


def test_types_that_onnx_lacks_are_refused():
    with pytest.raises(SmeltError) as caught:
        trace(lambda x: x.astype(jnp.float8_e3m4), "f32[3]")
    assert caught.value.code == "E105"


def test_dead_equations_need_no_lowering():
    model = trace(lambda x: (jax.pure_callback(np.sin, x, x), x + 1)[1], "f32[3,3]")
    assert [node.op_type for node in model.graph] == ["Add"]


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23, 24])
def test_opsets(check, opset):
    model = check(lambda x: jax.nn.softmax(x.reshape(x.shape[0], -1)), "f32[B,2,2]", opset=opset)
    assert model.graph.opset_imports[""] == opset


def test_an_opset_out_of_range_is_refused():
    with pytest.raises(UsageError) as caught:
        trace(lambda x: x, "f32[]", opset=17)
    assert caught.value.code == "E107"


def test_origins_name_the_users_line_and_the_calls():
    class Model(nnx.Module):
        def __init__(self):
            self.layer = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
            self.norm = nnx.BatchNorm(3, use_running_average=True, rngs=nnx.Rngs(0))

        def __call__(self, x):
            with jax.named_scope("head"):
                return nnx.relu(self.norm(self.layer(x)))

    model = trace(Model(), "f32[B,3]")
    origins = [str(origin_of(node)) for node in model.graph]
    assert all("test_trace.py" in origin and "Model.__call__" in origin for origin in origins)
    assert "relu" in origins[-1]
    assert "head" in origins[0]


def test_the_same_function_gives_the_same_model():
    layer = nnx.Linear(64, 64, rngs=nnx.Rngs(0))
    texts = [
        ir.to_proto(trace(layer, "f32[B,64]")).SerializeToString(deterministic=True)
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_threads_trace_at_once_and_in_different_precisions():
    results: dict[int, str] = {}
    barrier = threading.Barrier(4)

    def work(i: int) -> None:
        barrier.wait()
        for _ in range(3):
            model = trace(
                lambda x: jnp.sin(x) + jnp.arange(4), f"f{64 if i % 2 else 32}[4]", x64=bool(i % 2)
            )
            results[i] = canonical(model)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[2]
    assert results[1] == results[3]
    assert "double" in results[1]
    assert "double" not in results[0]
    assert jnp.arange(3).dtype == jnp.int32
