"""Code that compares open sizes is traced in cases, and the model chooses a case by its sizes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

pytestmark = pytest.mark.filterwarnings("ignore:the model (holds|is not)")

SIZES = [{"N": n, "M": m} for n, m in ((1, 1), (2, 5), (3, 2), (4, 4), (5, 1), (9, 7))]
TABLE = {4: 2.0, 9: 3.0}


def half_or_whole(x):
    return x[:3] if x.shape[0] > 3 else 2 * x


def padded_to_even(x):
    return jnp.concatenate([x, x[:1]]) if x.shape[0] % 2 else x


def third(x):
    rest = x.shape[0] % 3
    return x.sum() if rest == 0 else x.max() if rest == 1 else x.min()


def by_shape(x, y):
    return x + y if x.shape == y.shape else x.sum() + y


def shorter_first(x, y):
    return jnp.outer(x, y).ravel() if x.shape[0] <= y.shape[0] else x[: y.shape[0]]


def with_keys_and_complex_numbers(x):
    spectrum = jnp.fft.fft(x) if x.shape[0] > 4 else x + 0j
    return jnp.abs(spectrum), jax.random.normal(jax.random.key(3), x.shape)


CASES = {
    "a slice": (half_or_whole, 1),
    "a remainder": (padded_to_even, 1),
    "several remainders": (third, 1),
    "a table": (lambda x: x * TABLE.get(x.shape[0], 1.0), 1),
    "two shapes": (by_shape, 2),
    "the longer": (shorter_first, 2),
    "keys and complex numbers": (with_keys_and_complex_numbers, 1),
    "a kernel that may be longer": (lambda x: jnp.convolve(x, jnp.ones(3), "same"), 1),
    "a slice whose end may be counted from the end": (lambda x: x[: x.shape[0] - 3 : 2].sum(), 1),
    "slices that fit some sizes": (lambda x: x[2:] + jnp.arange(max(x.shape[0] - 2, 0)), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_every_size_is_right(check, name):
    fn, count = CASES[name]
    model = check(fn, *("f32[N]", "f32[M]")[:count], sizes=SIZES, rtol=1e-4, atol=1e-5)
    assert [node for node in model.graph if node.op_type == "If"]


def test_the_warning_names_the_cases_and_the_line_of_the_comparison():
    with pytest.warns(UserWarning, match=r"2 cases .* N >= 4 and N <= 3 .*test_size_cases.py"):
        trace(half_or_whole, "f32[N]")


def test_a_constraint_leaves_one_case(recwarn):
    model = trace(half_or_whole, "f32[N]", constraints=("N >= 4",))
    assert not [node for node in model.graph if node.op_type == "If"]
    assert not recwarn.list


def test_sizes_for_which_the_function_raises_are_no_case(check):
    def fn(x):
        if x.shape[0] < 2:
            raise ValueError("too few")
        return x.var(ddof=1)

    with pytest.warns(UserWarning, match="does not cover sizes where N <= 1.*: too few"):
        model = check(fn, "f32[N]", sizes=SIZES[1:])
    assert not [node for node in model.graph if node.op_type == "If"]


def test_the_case_of_one_row_without_pairs(check):
    """One row has N * (N - 1) // 2 = 0 pairs, and the median of no numbers raises."""

    def fn(x):
        rows, columns = jnp.triu_indices(x.shape[0], k=1)
        return jnp.median(x[rows] - x[columns])

    with pytest.warns(UserWarning, match="does not cover sizes"):
        check(fn, "f32[N]", sizes=SIZES[1:4])


def test_dims_of_results_keep_names_that_all_cases_share():
    def fn(x):
        return (x, x[:1]) if x.shape[0] == 1 else (2 * x, x[1:])

    first, second = trace(fn, "f32[N]").graph.outputs
    assert first.shape == ["N"]
    assert second.shape != ["N - 1"]


def test_weights_and_parameters_are_shared_by_the_cases():
    weight = np.ones((64, 64), np.float32)

    def fn(x):
        return x @ weight if x.shape[0] > 3 else -(x @ weight)

    model = trace(fn, "f32[N,64]")
    assert sum(value.const_value.size > 1 for value in model.graph.initializers.values()) == 1
    model = trace(fn, "f32[N,64]", input_params=["weight"])
    assert [value.name for value in model.graph.inputs] == ["x", "weight"]


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (lambda x: (x, x) if x.shape[0] > 3 else x, "'N >= 4' or 'N <= 3'"),
        (lambda x: x.sum() if x.shape[0] > 3 else x, "'N >= 4' or 'N <= 3'"),
        (lambda x: x if x.shape[0] > 9 else x[: max(range(x.shape[0]))], "'N >= 10'"),
    ],
)
def test_cases_of_other_types_and_cases_that_fail_are_refused(fn, says):
    with pytest.raises(SmeltError, match="inconclusive") as caught:
        trace(fn, "f32[N]")
    assert f"a constraint, {says}; or give" in caught.value.fix
    assert "test_size_cases.py" in caught.value.at[0]


def test_a_single_working_size_is_no_advice():
    fn = lambda x: x if x.shape[0] <= 1 else x[: max(range(x.shape[0]))]  # noqa: E731
    with pytest.raises(SmeltError, match="inconclusive") as caught:
        trace(fn, "f32[N]")
    assert caught.value.fix == "give the dim as a number"


def test_a_function_with_endless_comparisons_is_refused():
    def fn(x):
        bound = 1
        while x.shape[0] > bound:
            bound += 1
        return x

    with pytest.raises(SmeltError, match="E112"):
        trace(fn, "f32[N]")


def test_size_cases_do_not_share_jit_caches(check):
    @jax.jit
    def inner(x):
        return 2 * x if x.shape[0] == 4 else -x

    for _ in range(2):
        check(inner, "f32[N]", sizes=SIZES)
        with pytest.raises(SmeltError, match="E112"):
            trace(inner, "f32[N]", strict=True)


def test_an_error_on_every_path_is_reported():
    def fn(x):
        half = x[:2] if x.shape[0] < 3 else x
        raise ValueError(f"no such layer for rank {half.ndim}")

    with pytest.raises(SmeltError, match="E113") as refused:
        trace(fn, "f32[N]")
    assert "no such layer for rank 1" in refused.value.why
