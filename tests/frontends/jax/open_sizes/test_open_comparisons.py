"""Python code that compares symbolic sizes gets an answer if it is the same for all sizes."""

from __future__ import annotations

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

SIZES = [{"N": size} for size in (1, 4, 7)]
MEMBERS = {1, 3}
SCALES = {1: 2, 3: 5}


def matched(n):
    match n:
        case 4:
            return True
        case _:
            return False


def entry(n):
    try:
        return SCALES[n] == 2
    except KeyError:
        return False


class Tables:
    scales = SCALES


@dataclasses.dataclass
class Size:
    n: object


ASKED = {
    "even": (lambda n: n % 2 == 0, "N % 2 == 0"),
    "odd": (lambda n: n % 2 != 0, "N % 2 == 0"),
    "a remainder": (lambda n: bool(n % 2), "N % 2 == 1"),
    "no remainder": (lambda n: not n % 8, "N % 8 == 0"),
    "a quotient": (lambda n: n // 2 == 3, "N >= 8"),
    "a number": (lambda n: n == 4, "N >= 5"),
    "a number first": (lambda n: n == 4, "N <= 3"),
    "a number on the left": (lambda n: 4 == n, "N >= 5"),  # noqa: SIM300
    "a float": (lambda n: n == 4.0, "N >= 5"),
    "one": (lambda n: n == 1, "N >= 2"),
    "zero": (lambda n: bool(n - 1), "N >= 2"),
    "of a tuple": (lambda n: n in (1, 3), "N >= 4"),
    "of a set": (lambda n: n in {1, 3}, "N >= 4"),
    "of a named set": (lambda n: n in MEMBERS, "N >= 4"),
    "of no set": (lambda n: n not in MEMBERS, "N >= 4"),
    "got from a table": (lambda n: SCALES.get(n, 0) == 2, "N >= 4"),
    "got from a table of an object": (lambda n: Tables.scales.get(n) is not None, "N >= 4"),
    "got from a written table": (lambda n: {4: True, 9: True}.get(n, False), "N >= 10"),
    "an entry": (entry, "N >= 4"),
    "an entry for two": (lambda n: {(4, 3): True}.get((n, 3), False), "N >= 5"),
    "a set with a number": (lambda n: len({n, 4}) == 2, "N >= 5"),
    "a shape": (lambda n: (n, 3) == (4, 3), "N >= 5"),
    "a shape in another": (lambda n: (n, 3) in [(4, 3)], "N >= 5"),
    "a place": (lambda n: (n, 3).index(3) == 1, "N >= 4"),
    "matched": (matched, "N >= 5"),
    "of a dataclass": (lambda n: Size(n) == Size(4), "N >= 5"),
    "the smaller": (lambda n: min(n, 4) == 4, "N >= 5"),
}


def chosen(asked):
    return lambda x: 2 * x if asked(x.shape[0]) else -x


@pytest.mark.parametrize("name", ASKED)
def test_strict_traces_refuse_comparisons_that_depend_on_sizes(name):
    with pytest.raises(SmeltError, match="E112") as caught:
        trace(chosen(ASKED[name][0]), "f32[N]", strict=True)
    assert "test_open_comparisons.py" in caught.value.at[0]
    assert "as a number" in caught.value.fix


@pytest.mark.parametrize("name", ASKED)
def test_a_comparison_that_constraints_decide(name, check):
    asked, constraint = ASKED[name]
    sizes = [{"N": n} for n in range(1, 17) if eval(constraint, {"N": n})]
    check(chosen(asked), "f32[N]", sizes=sizes[-2:], constraints=(constraint,))


@pytest.mark.parametrize(
    ("asked", "dim", "constraint"),
    [
        (lambda n: n % 2 == 0, "2*N", ""),
        (lambda n: n % 2 == 0, "2*N + 1", ""),
        (lambda n: n == 3, "2*N", ""),
        (lambda n: n % 4 in (0, 2), "4*N + 2", ""),
        (lambda n: n % 4 == 3, "2*N", ""),
        (lambda n: (n // 2) % 2 == 1, "4*N + 2", ""),
        (lambda n: n % 2 == 0, "N", "N % 8 == 0"),
        (lambda n: n == 12, "N", "N % 8 == 0"),
        (lambda n: (n + 1) % 4 == 2, "N", "N % 4 == 1"),
        (lambda n: n == 1, "N", "N <= 1"),
        (lambda n: n == n + 1, "N", ""),
        (bool, "N", ""),
        (lambda n: n == 4.5, "N", ""),
        (lambda n: n == "4" or n is None or n == (4,), "N", ""),
        (lambda n: (n, 3) in {(4, 3): 0}, "N", "N >= 5"),
    ],
)
def test_a_comparison_with_one_answer_for_all_sizes_is_decided(check, asked, dim, constraint):
    sizes = [{"N": n} for n in (1, 8, 9) if not constraint or eval(constraint, {"N": n})]
    constraints = (constraint,) if constraint else ()
    check(chosen(asked), f"f32[{dim}]", sizes=sizes, constraints=constraints)


def test_the_error_for_two_equal_sizes_advises_one_name():
    def fn(x, y):
        assert x.shape == y.shape
        return x + y

    with pytest.raises(SmeltError, match=r"'N' [=!]= 'M'") as caught:
        trace(fn, "f32[N]", "f32[M]", strict=True)
    assert "the same name" in caught.value.fix
    trace(fn, "f32[N]", "f32[N]")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda n: n % 2 == 0, ("'f32[2*N,3]'", "'N % 2 == 0' or 'N % 2 == 1'")),
        (lambda n: n % 3, ("'f32[3*N,3]'", "'N % 3 == 0'")),
        (lambda n: (n + 1) % 3 == 0, ("'(N + 1) % 3 == 0'",)),
        (lambda n: n == 4, ("'N <= 3' or 'N >= 5'",)),
        (lambda n: n == 1, ("'N >= 2'",)),
        (lambda n: n // 2 == 3, ("'N//2 <= 2' or 'N//2 >= 4'",)),
        (lambda n: n // 2 < 4, ("'N//2 <= 3' or 'N//2 >= 4'",)),
    ],
)
def test_each_advice_of_the_error_works(asked, says):
    fn = chosen(asked)
    with pytest.raises(SmeltError, match="inconclusive") as caught:
        trace(fn, "f32[N]", strict=True)
    for text in says:
        assert text in caught.value.fix
        for constraint in text.split(" or "):
            if "f32" in text:
                trace(fn, constraint.strip("'").replace(",3", ""))
            else:
                trace(fn, "f32[N]", constraints=(constraint.strip("'"),))


def test_the_model_may_compare_sizes(check):
    def fn(x):
        is_even = jnp.equal(x.shape[0] % 2, 0)
        return jnp.where(is_even, x, -x), jax.lax.cond(is_even, lambda: x, lambda: 2 * x)

    check(fn, "f32[N]", sizes=SIZES)


@pytest.mark.parametrize("other", [jnp.arange(8), np.arange(8), np.arange(8.0)])
def test_arrays_are_compared_by_elements(check, other):
    def fn(x):
        n = x.shape[0]
        ordered = (n < other, n <= other, n > other, n >= other, other < n, other >= n)
        return n == other, other == n, n != other, other != n, *ordered, n == x, x != n

    check(fn, "f32[N]", sizes=SIZES)


def test_floats_are_compared_as_numbers(check):
    def fn(x):
        n = x.shape[0]
        above = (n > 3.5, n >= 3.5, n >= 4.0, n > 3.5, n > -1e9)
        return (
            x * jnp.array([*above, n < 3.5, n <= 3.5, n < 4.0, n == 3.5, n < float("-inf")]).sum()
        )

    check(fn, "f32[N]", sizes=SIZES[1:], constraints=("N >= 4",))


def test_sizes_can_be_keys_of_caches(check):
    def fn(x):
        seen = {x.shape: x, x.shape[0]: -x}
        assert x.shape in seen
        return seen[x.shape] + seen[x.shape[0]] * 3

    check(fn, "f32[N]", sizes=SIZES)


LIBRARY = """
def remainder(x):
    return x if x.shape[0] % 2 == 0 else -x

def special(x):
    return x if x.shape[0] == 2 else -x

def broadcasts(x):
    return x if x.shape[0] == 1 else -x
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_layers.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(folder)
    import some_layers

    yield some_layers
    del sys.modules["some_layers"]


def test_a_library_compares_whole_sizes_as_jax_does(library):
    with pytest.raises(SmeltError, match="'mod\\(N, 2\\)' == '0'"):
        trace(library.remainder, "f32[N]", strict=True)
    with pytest.warns(UserWarning, match="the model is wrong where N is 2"):
        trace(library.special, "f32[N]")
    trace(library.broadcasts, "f32[N]")
    trace(library.special, "f32[N]", constraints=("N >= 3",))


def test_outside_of_a_trace_sizes_behave_as_in_jax():
    n = jax.export.symbolic_shape("N")[0]
    with pytest.raises(SmeltError):
        trace(lambda x: x if x.shape[0] == 4 else -x, "f32[N]", strict=True)
    assert n != 4
    assert bool(n % 2)
    assert "__bool__" not in vars(type(n))


def test_functions_without_a_file_count_as_user_code():
    names = {}
    exec("def fn(x):\n    return x if x.shape[0] % 2 == 0 else -x", names)
    with pytest.raises(SmeltError, match="E112"):
        trace(names["fn"], "f32[N]", strict=True)
