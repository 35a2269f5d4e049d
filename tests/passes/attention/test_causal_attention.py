"""An ``Attention`` whose bias is the causal mask gets ``is_causal`` and reads no bias."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from rewrites import check_operators, check_rewrite, check_unchanged, run_pass

import smelt
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention

LOW, NUMBERS = "float no = {0}, float low = {-1e31}", "int64 i = {0}, int64 j = {1}"
HEADS = "q_num_heads=3, kv_num_heads=3"
WHOLE = "float[N,3,S,8] q, float[N,3,S,8] k, float[N,3,S,6] v => (float[N,3,S,6] y)"
ROWS = "float[N,S,24] q, float[N,S,24] k, float[N,S,18] v => (float[N,S,18] y)"
MASK = (
    "s = Shape<start={axis}, end=AXIS>(q) n = Squeeze(s) c = Range(i, n, j) r = Unsqueeze(c, one) "
    "{condition} b = Where(m, no, low) "
)
SEEN = "m = GreaterOrEqual(r, c)"


def graph(body: str, *, operands: str = WHOLE, inputs: str = "", constants: str = "") -> str:
    """Return ``body`` over queries, keys and values, with further inputs and constants if given."""
    given, results = operands.split(" => ")
    listed = ", ".join(filter(None, [LOW, NUMBERS, "int64[1] one = {1}", constants]))
    return f"g ({given}{inputs}) => {results} <{listed}> {{ {body} }}"


def masked(condition: str = SEEN, *, attributes: str = "scale=0.3", **more: str) -> str:
    """Return attention with a mask ``m`` computed from row positions ``r`` and column positions
    ``c``."""
    axis = 1 if more.get("operands") == ROWS else 2
    mask = MASK.replace("AXIS", str(axis + 1)).format(axis=axis, condition=condition)
    return graph(f"{mask} y = Attention<{attributes}>(q, k, v, b)", **more)


def causal(attributes: str = "scale=0.3", operands: str = WHOLE) -> str:
    return graph(f"y = Attention<{attributes}, is_causal=1>(q, k, v)", operands=operands)


def test_the_mask_becomes_an_attribute() -> None:
    check_rewrite(fuse_attention, masked(), causal(), modes=("normal",))
    check_rewrite(
        fuse_attention, masked(operands=ROWS, attributes=HEADS), causal(HEADS, ROWS), modes=("normal",),
    )  # fmt: skip


def square(*, k: int = 0, lead: str = "", size: int = 4) -> str:
    held = ("0" if column <= row + k else "-3e38" for row in range(size) for column in range(size))
    return f"float[{lead}{size},{size}] b = {{{','.join(held)}}}"


@pytest.mark.parametrize("lead", ["", "1,1,"])
def test_a_constant_mask_serves_every_layer(lead: str) -> None:
    body = "a = Attention(q, k, v, b) y = Attention<scale=0.3>(a, k, v, b)"
    operands = WHOLE.replace(",S,", ",4,").replace(",6]", ",8]")
    model = check_operators(
        fuse_attention, graph(body, operands=operands, constants=square(lead=lead)),
        ["Attention", "Attention"], modes=("normal",),
    )  # fmt: skip
    assert [len(node.inputs) for node in model.graph] == [3, 3]


def test_one_query_and_one_key() -> None:
    before = graph("y = Attention(q, k, v, b)", operands=WHOLE.replace(",S,", ",1,"),
                   constants="float[1,1] b = {0}")  # fmt: skip
    model = check_operators(fuse_attention, before, ["Attention"], modes=("normal",))
    assert "b" not in {value.name for value in model.graph.node(0).inputs if value is not None}


def test_queries_that_share_keys() -> None:
    before = masked(
        operands="float[N,S,24] q, float[N,S,8] k, float[N,S,8] v => (float[N,S,24] y)",
        attributes="q_num_heads=3, kv_num_heads=1",
    ).replace("start=2, end=3", "start=1, end=2")
    model = check_operators(
        fuse_attention, before, ["Attention"], modes=("normal",)
    )  # fmt: skip
    assert model.graph.node(-1).attributes["is_causal"].as_int() == 1


STATIC = WHOLE.replace(",S,", ",4,")
KEPT = {
    "without the own position": masked("m = Greater(r, c)"),
    "the keys after": masked("m = LessOrEqual(r, c)"),
    "an offset": masked("o = Add(r, j) m = GreaterOrEqual(o, c)"),
    "a window": masked("a = GreaterOrEqual(r, c) o = Sub(r, j) d = LessOrEqual(o, c) m = And(a, d)"),
    "padding": masked("a = GreaterOrEqual(r, c) m = And(a, p)", inputs=", bool[N,1,1,S] p"),
    "a mask that is given": masked(inputs=", bool[S,S] m", condition=""),
    "an array without the own position": graph(
        "y = Attention(q, k, v, b)", operands=STATIC, constants=square(k=-1)),
    "an array with an offset": graph(
        "y = Attention(q, k, v, b)", operands=STATIC, constants=square(k=1)),
    "a mask of booleans": masked().replace("b = Where(m, no, low)", "b = And(m, m)"),
    "keys of another number": masked().replace("3,S,8] k", "3,T,8] k").replace("S,6] v", "T,6] v"),
    "heads of keys that are not known": masked().replace("N,3,S,8] k", "N,H,S,8] k"),
    "a mask of its own": masked(attributes="is_causal=1"),
    "keys handed on": masked().replace("y = A", "y, kk = A").replace(
        "S,6] y)", "S,6] y, float[N,3,S,8] kk)"),
}  # fmt: skip


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT.keys())
def test_other_masks_stay(before: str) -> None:
    check_unchanged(fuse_attention, before)


def test_near_misses_say_why() -> None:
    stats = run_pass(fuse_attention, text.parse(KEPT["without the own position"], 23))
    assert (
        "causal",
        "the mask is a triangle, but hides other keys than the causal mask does",
    ) in stats.missed
    stats = run_pass(fuse_attention, text.parse(KEPT["keys of another number"], 23))
    assert any(
        "queries and keys are not proved to be equally many" in why for _, why in stats.missed
    )


Maker = Callable[[jax.Array, int], jax.Array]
MAKERS: dict[str, Maker] = {
    "tril": lambda x, n: jnp.tril(jnp.ones((n, n), bool)),
    "tril of numbers": lambda x, n: jnp.tril(jnp.ones((1, 1, n, n))) == 1,
    "tri": lambda x, n: jnp.tri(n, dtype=bool),
    "not triu": lambda x, n: ~jnp.triu(jnp.ones((n, n), bool), 1),
    "positions": lambda x, n: jnp.arange(n)[:, None] >= jnp.arange(n)[None],
    "not less": lambda x, n: ~(jnp.arange(n)[:, None] < jnp.arange(n)),
    "nnx": lambda x, n: nnx.make_causal_mask(x[:, 0, :, 0]),
    "linen": lambda x, n: linen.make_causal_mask(jnp.ones((1, n))),
}  # fmt: skip
FROM_JAX = {name: (make, True) for name, make in MAKERS.items()} | {
    "a window": (lambda x, n: jnp.tril(jnp.ones((n, n), bool)) & jnp.triu(
        jnp.ones((n, n), bool), -2), False),
    "strict": (lambda x, n: jnp.tri(n, k=-1, dtype=bool), False),
    "padding": (lambda x, n: jnp.tri(n, dtype=bool) & (x.sum((1, 3)) > 0)[:, None, None], False),
}  # fmt: skip


def attend(make: Maker) -> Callable[..., jax.Array]:
    def function(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / np.sqrt(8)
        hidden = jnp.where(make(q, q.shape[2]), scores, jnp.finfo(jnp.float32).min)
        return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(hidden, axis=-1), v)

    return function


def is_causal(function: Callable[..., jax.Array], spec: str, shape: tuple[int, ...]) -> bool:
    """True if the one Attention has ``is_causal``; checks that the results equal JAX's."""
    inputs = [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i in range(3)]
    model = smelt.optimize(smelt.trace(function, *[spec] * 3))
    (node,) = (node for node in model.graph if node.op_type == "Attention")
    (actual,) = smelt.compile(model, target="onnx").load()(*inputs)
    np.testing.assert_allclose(actual, function(*inputs), rtol=1e-4, atol=1e-5)
    return len(node.inputs) == 3 and node.attributes["is_causal"].as_int() == 1


@pytest.mark.parametrize("size", ["7", "S"])
@pytest.mark.parametrize(("make", "expected"), FROM_JAX.values(), ids=FROM_JAX.keys())
def test_masks_as_jax_makes_them(make: Maker, expected: bool, size: str) -> None:
    assert is_causal(attend(make), f"f32[B,2,{size},8]", (3, 2, 7, 8)) is expected


@pytest.mark.parametrize("size", ["7", "S"])
def test_attention_of_jax_itself(size: str) -> None:
    def function(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    assert is_causal(function, f"f32[B,{size},2,8]", (3, 7, 2, 8))
