"""Layers, searches and graphs, as people write them by hand with JAX alone or a library."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from wild.agreement import Case, agrees


def _normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def _experts(flax):
    """Two of three experts for each row, each with room for so many rows; the rest is dropped."""
    gate, wide, narrow = _normal(7, 4, 3), _normal(5, 3, 4, 8), _normal(6, 3, 8, 4)

    def layer(x):
        rows = x.shape[0]
        room = (rows * 2 + 2) // 3
        weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        used = jax.nn.one_hot(chosen, 3, dtype=jnp.int32)
        flat = used.transpose(1, 0, 2).reshape(-1, 3)
        before = (jnp.cumsum(flat, 0) - flat).reshape(2, rows, 3).transpose(1, 0, 2)
        place = jnp.where((before * used).sum(-1) < room, (before * used).sum(-1), room)
        sent = jnp.zeros((3, room, 4)).at[chosen, place].add(x[:, None], mode="drop")
        hidden = jax.nn.gelu(jnp.einsum("ecd,edh->ech", sent, wide))
        back = jnp.einsum("ech,ehd->ecd", hidden, narrow)
        taken = back.at[chosen, place].get(mode="fill", fill_value=0)
        return (taken * (weights / weights.sum(-1, keepdims=True))[..., None]).sum(1)

    return layer


def _splines(flax):
    """A layer of splines, degree by degree, as in networks of Kolmogorov and Arnold."""
    grid, weights = jnp.linspace(-2.5, 2.5, 12), _normal(1, 4, 3, 8)

    def layer(x):
        x = x[..., None]
        basis = ((x >= grid[:-1]) & (x < grid[1:])).astype(x.dtype)
        for k in range(1, 4):
            rising = (x - grid[: -(k + 1)]) / (grid[k:-1] - grid[: -(k + 1)])
            falling = (grid[k + 1 :] - x) / (grid[k + 1 :] - grid[1:-k])
            basis = rising * basis[..., :-1] + falling * basis[..., 1:]
        return jnp.einsum("nik,iok->no", basis, weights)

    return layer


def _diagonal_states(flax):
    """A linear state of complex numbers, by an associative scan."""
    decay = jnp.exp(-jnp.linspace(0.1, 1, 6) + 1j * jnp.linspace(0, 3, 6)).astype(jnp.complex64)
    mix = (_normal(0, 6, 4) + 1j * _normal(1, 6, 4)).astype(jnp.complex64)

    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    def layer(x):
        pushed = x.astype(jnp.complex64) @ mix.T
        decays = jnp.tile(decay, (x.shape[0], 1))
        return (lax.associative_scan(combine, (decays, pushed))[1] @ mix).real

    return layer


def _long_convolution(flax):
    """A kernel as long as the input, by Fourier transforms of twice its size."""
    decay = -jnp.arange(1, 9) + 0.5j * jnp.arange(8)
    weights = _normal(0, 8) + 1j * _normal(1, 8)

    def layer(x):
        size = x.shape[0]
        kernel = (weights * jnp.exp(decay * 0.1 * jnp.arange(size)[:, None])).sum(-1).real
        spectrum = jnp.fft.rfft(x[:, 0], n=2 * size) * jnp.fft.rfft(kernel, n=2 * size)
        return jnp.fft.irfft(spectrum, n=2 * size)[:size]

    return layer


def _joined(flax):
    """Sets that are joined, whose roots are looked for by a loop inside of a loop."""

    def sets(x):
        order = jnp.argsort(x[:, 0])

        def root(parents, a):
            return lax.while_loop(lambda a: parents[a] != a, lambda a: parents[a], a)

        def join(i, parents):
            a, b = root(parents, order[i]), root(parents, order[(i + 1) % x.shape[0]])
            return lax.cond(x[i, 1] > 0, lambda p: p.at[a].set(b), lambda p: p, parents)

        return lax.fori_loop(0, x.shape[0], join, jnp.arange(x.shape[0]))

    return sets


def _boxes(flax):
    """Boxes that overlap no better one."""

    def kept(x):
        boxes = jnp.concatenate([x[:, :2], x[:, :2] + jnp.abs(x[:, 2:])], 1)
        order = jnp.argsort(-x[:, 0])
        boxes = boxes[order]
        low = jnp.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = jnp.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        common = jnp.prod(jnp.clip(high - low, 0), -1)
        area = jnp.prod(boxes[:, 2:] - boxes[:, :2], -1)
        overlaps = common / (area[:, None] + area - common) > 0.2
        places = np.arange(x.shape[0])

        def step(keep, i):
            return keep.at[i].set(~jnp.any(overlaps[i] & keep & (places < i))), None

        return lax.scan(step, jnp.ones(x.shape[0], bool), places)[0], order

    return kept


def _attended_graph(jraph):
    mix = _normal(3, 4, 4) / 2

    def score(sent, received, _):
        return jax.nn.leaky_relu((sent * received).sum(-1, keepdims=True))

    def layer(x):
        rows = jnp.arange(x.shape[0])
        graph = jraph.GraphsTuple(
            nodes=x, edges=None, globals=None,
            senders=jnp.concatenate([rows, rows]),
            receivers=jnp.concatenate([rows, (rows + 1) % x.shape[0]]),
            n_node=jnp.array([x.shape[0]]), n_edge=jnp.array([2 * x.shape[0]]),
        )  # fmt: skip
        return jraph.GAT(lambda n: n @ mix, score, jax.nn.elu)(graph).nodes

    return layer


def _reached(diffrax):
    """A solution that ends where an event says so."""
    import optimistix

    def ends(x):
        event = diffrax.Event(lambda t, y, args, **_: y[0] - 0.5, optimistix.Newton(1e-4, 1e-4))
        decay = diffrax.ODETerm(lambda t, y, a: -y * (1 + jnp.abs(a)))
        solved = diffrax.diffeqsolve(
            decay, diffrax.Tsit5(), 0.0, 5.0, 0.1, jnp.ones(2), args=x.mean(), event=event,
            stepsize_controller=diffrax.PIDController(1e-4, 1e-6),
        )  # fmt: skip
        return solved.ts, solved.ys

    return ends


def _image_layers(equinox):
    """Convolutions of every kind mapped over a batch, with channels moved by the caller."""
    nn, keys = equinox.nn, jax.random.split(jax.random.key(0), 4)
    network = nn.Sequential([
        nn.Conv2d(1, 4, 3, padding=1, key=keys[0]),
        nn.Lambda(jax.nn.relu),
        nn.Conv2d(4, 4, 3, stride=2, padding="SAME", groups=4, key=keys[1]),
        nn.GroupNorm(2, 4),
        nn.ConvTranspose2d(4, 2, 2, stride=2, key=keys[2]),
        nn.AdaptiveAvgPool2d(2),
        nn.Conv2d(2, 3, 2, dilation=1, use_bias=False, key=keys[3]),
    ])  # fmt: skip

    def layer(x):
        images = x[:, :, None] * jnp.linspace(-1, 1, 6)
        return jax.vmap(network)(images[:, None])

    return layer


QUICK = {
    "splines": Case("flax", _splines),
    "joined sets": Case("flax", _joined),
    "image layers": Case("equinox", _image_layers, (("N", 6),)),
}
CASES = {
    "experts": Case("flax", _experts),
    "diagonal states": Case("flax", _diagonal_states),
    "long convolution": Case("flax", _long_convolution, tolerance=1e-3),
    "boxes": Case("flax", _boxes),
    "attended graph": Case("jraph", _attended_graph),
    "event": Case("diffrax", _reached, tolerance=1e-2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:the model (holds|is not)", "ignore:a check is left out")
def test_functions_of_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(CASES[name])


@pytest.mark.parametrize("name", QUICK)
def test_functions_without_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(QUICK[name])
