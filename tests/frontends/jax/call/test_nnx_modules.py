"""nnx modules that write to their variables are traced if no result depends on the writes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

CELLS = {
    "LSTM": lambda: nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)),
    "optimized LSTM": lambda: nnx.OptimizedLSTMCell(3, 5, rngs=nnx.Rngs(0)),
    "GRU": lambda: nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)),
    "simple": lambda: nnx.SimpleCell(3, 5, rngs=nnx.Rngs(0)),
}


class Noisy(nnx.Module):
    """A module that draws noise from its stream; it adds the noise or discards it."""

    def __init__(self, used: bool) -> None:
        self.rngs = nnx.Rngs(0)
        self.used = used

    def __call__(self, x):
        noise = jax.random.normal(self.rngs(), x.shape)
        return x + noise if self.used else x * 2


@pytest.mark.parametrize("cell", CELLS)
def test_a_recurrent_network_starts_from_zeros(check, cell):
    model = check(nnx.RNN(CELLS[cell]()), "f32[B,7,3]", compiled=False, rtol=1e-4)
    assert [node.op_type for node in model.graph].count("Scan") == 1


def test_both_directions_and_the_last_state(check):
    first, second = nnx.RNN(CELLS["GRU"]()), nnx.RNN(CELLS["GRU"]())
    both = nnx.Bidirectional(first, second, return_carry=True, rngs=nnx.Rngs(0))
    check(both, "f32[B,7,3]", compiled=False, rtol=1e-4)
    check(
        lambda x: nnx.RNN.__call__(first, x, time_major=True),
        "f32[7,3,3]",
        compiled=False,
        rtol=1e-4,
    )


def test_weights_keep_the_names_of_the_module():
    model = trace(nnx.RNN(CELLS["simple"]()), "f32[B,7,3]", input_params="*kernel")
    names = [value.name for value in model.graph.inputs]
    assert names == ["inputs", "cell_dense_h_kernel", "cell_dense_i_kernel"]


def test_a_trace_does_not_change_the_callers_module():
    module = Noisy(used=False)
    trace(module, "f32[B]")
    assert isinstance(module.rngs.default.count.get_raw_value(), jax.Array)
    assert int(module.rngs.default.count[...]) == 0
    assert module(jnp.ones(2)).shape == (2,)


def test_a_random_draw_without_readers_is_allowed(check):
    check(Noisy(used=False), "f32[B]", compiled=False)


def test_results_that_depend_on_random_numbers_are_refused():
    with pytest.raises(SmeltError, match=r"E102.*draws random numbers"):
        trace(Noisy(used=True), "f32[B]")
    with pytest.raises(SmeltError, match=r"E102.*draws random numbers"):
        trace(nnx.Dropout(0.5, rngs=nnx.Rngs(0)), "f32[B]")


def test_dropout_at_inference_adds_no_nodes(check):
    model = nnx.Sequential(nnx.Linear(3, 3, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    model.eval()
    check(model, "f32[B,3]")


def test_a_key_in_a_closure_is_a_constant(check):
    key = jax.random.key(3)
    check(lambda x: x + jax.random.uniform(key, (3,)), "f32[B,3]", inputs=[[np.ones((2, 3))]])


def test_weights_that_are_normalized_in_place(check):
    linear = nnx.Linear(3, 5, rngs=nnx.Rngs(0))
    module = nnx.WeightNorm(linear, rngs=nnx.Rngs(0))
    check(lambda x: module(x) * 2, "f32[B,3]", compiled=False)
    assert isinstance(linear.kernel[...], jax.Array)


def test_weights_that_are_normalized_by_their_spectrum(check):
    module = nnx.SpectralNorm(nnx.Linear(3, 5, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0))
    module.eval()
    before = module.layer_instance.kernel[...]
    model = trace(module, "f32[B,3]")
    assert [len(value.shape) for value in model.graph.outputs] == [2]
    np.testing.assert_array_equal(module.layer_instance.kernel[...], before)


def test_modules_that_update_running_statistics_are_refused():
    module = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
    with pytest.raises(SmeltError, match=r"E102.*writes to its variable 'mean'"):
        trace(module, "f32[B,4]")
    np.testing.assert_array_equal(module.mean[...], 0)


class Watched(nnx.Module):
    """A module that records an intermediate value for its caller."""

    def __call__(self, x):
        self.sow(nnx.Intermediate, "doubled", x * 2)
        return x * 2 + 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_recorded_intermediate_values_are_left_out(check):
    module = Watched()
    check(module, "f32[B]", compiled=False)
    trace(module, "f32[B]")
