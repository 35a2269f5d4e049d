"""Functions as people write them with libraries of JAX: right at two sizes.

The libraries are the extra ``wild``. What is not installed is left out; equinox and flax, which the
development extra has, are tested in the quick suite.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from wild.agreement import Case, agrees


def _haiku(hk):
    def forward(x):
        x = hk.Linear(8)(x)
        x = hk.LayerNorm(-1, create_scale=True, create_offset=True)(jax.nn.gelu(x))
        return hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(x, x, x)

    model = hk.without_apply_rng(hk.transform(forward))
    params = model.init(jax.random.key(0), jnp.ones((2, 4)))
    return lambda x: model.apply(params, x)


def _haiku_lstm(hk):
    def forward(x):
        core = hk.LSTM(5)
        return hk.dynamic_unroll(core, x, core.initial_state(None))[0]

    model = hk.without_apply_rng(hk.transform(forward))
    params = model.init(jax.random.key(0), jnp.ones((2, 4)))
    return lambda x: model.apply(params, x)


def _jraph(jraph):
    def aggregate(x):
        nodes = jnp.arange(x.shape[0], dtype=jnp.int32) // 2
        sums = jraph.segment_sum(x, nodes, num_segments=4)
        return sums, jraph.segment_mean(x, nodes, 4), jraph.segment_softmax(x, nodes, 4)

    return aggregate


def _jraph_greatest(jraph):
    def greatest(x):
        segments = jnp.arange(x.shape[0], dtype=jnp.int32) // 2
        return jraph.segment_max_or_constant(x, segments, x.shape[0])

    return greatest


def _numpyro(numpyro):
    import numpyro.distributions as dist

    def density(x):
        mixture = dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.3, 0.7])),
            dist.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 1.0])),
        )
        return (
            mixture.log_prob(x).sum(-1),
            dist.Gamma(2.0, 1.0).log_prob(jnp.abs(x) + 0.1),
            dist.StudentT(3.0).log_prob(x),
            dist.MultivariateNormal(jnp.zeros(4), 2 * jnp.eye(4)).log_prob(x),
        )

    return density


def _distrax(distrax):
    def flow(x):
        bijector = distrax.Chain([distrax.ScalarAffine(1.0, 2.0), distrax.Tanh()])
        return bijector.forward_and_log_det(x), distrax.Normal(0.0, 1.0).log_prob(x)

    return flow


def _hidden_states(distrax):
    def states(x):
        model = distrax.HMM(
            init_dist=distrax.Categorical(probs=jnp.array([0.6, 0.4])),
            trans_dist=distrax.Categorical(probs=jnp.array([[0.7, 0.3], [0.2, 0.8]])),
            obs_dist=distrax.MultivariateNormalDiag(jnp.ones((2, 4)) * jnp.array([[0], [2]])),
        )
        return model.forward_backward(x), model.viterbi(x)

    return states


def _blackjax(blackjax):
    kernel = blackjax.hmc(lambda q: -(q**2).sum(), 0.1, jnp.ones(4), 3)

    def step(x):
        state, _ = kernel.step(jax.random.key(0), kernel.init(x.mean(0)))
        return state.position

    return step


def _rlax(rlax):
    return lambda x: rlax.lambda_returns(x[:, 0], 0.9 * jnp.ones(x.shape[:1]), x[:, 1], 0.8)


def _optax(optax):
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))

    def train(x):
        w = jnp.ones((4, 2))
        state = optimizer.init(w)
        for _ in range(2):
            gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
            updates, state = optimizer.update(gradient, state, w)
            w = optax.apply_updates(w, updates)
        return w

    return train


def _tinygp(tinygp):
    def gp(x):
        kernel = 1.5 * tinygp.kernels.Matern32(2.0)
        process = tinygp.GaussianProcess(kernel, jnp.linspace(0, 1, 6), diag=0.1)
        return process.log_probability(jnp.tile(x.mean(0), 2)[:6])

    return gp


def _tinygp_gradient(tinygp):
    def likelihood(scale, x):
        kernel = tinygp.transforms.Linear(jnp.exp(-scale), tinygp.kernels.Matern32())
        process = tinygp.GaussianProcess(kernel, jnp.ones((6, 2)).cumsum(0), diag=0.2)
        return process.log_probability(jnp.tile(x.mean(0), 2)[:6])

    return lambda x: jax.value_and_grad(likelihood)(x.mean(), x)


def _ott(ott):
    from ott.geometry import pointcloud
    from ott.solvers import linear

    def transport(x):
        cost = pointcloud.PointCloud(x, jnp.tanh(x[:3]), epsilon=0.5)
        solved = linear.solve(cost, max_iterations=50)
        return solved.matrix, solved.reg_ot_cost

    return transport


def _mctx(mctx):
    weights = jax.random.normal(jax.random.key(0), (4, 4))

    def step(weights, key, action, embedding):
        state = jnp.tanh(embedding @ weights + jax.nn.one_hot(action, 3) @ weights[:3])
        found = mctx.RecurrentFnOutput(
            reward=state[:, 0],
            discount=jnp.full(state.shape[:1], 0.9),
            prior_logits=state[:, :3],
            value=state[:, 3],
        )
        return found, state

    def search(x):
        root = mctx.RootFnOutput(prior_logits=x[:, :3], value=x[:, 3], embedding=x)
        found = mctx.muzero_policy(weights, jax.random.key(1), root, step, num_simulations=6)
        return found.action, found.action_weights

    return search


def _jaxopt(jaxopt):
    def solve(x):
        problem = jaxopt.ProjectedGradient(
            lambda w: jnp.sum((x @ w - 1) ** 2), jaxopt.projection.projection_non_negative,
            maxiter=8, implicit_diff=False, jit=True,
        )  # fmt: skip
        return problem.run(jnp.ones(4)).params

    return solve


def _jaxlie(jaxlie):
    def moved(x):
        return jax.vmap(lambda v: jaxlie.SO3.exp(v[:3]).apply(jnp.ones(3)))(x)

    return moved


def _lineax(lineax):
    def solve(x):
        operator = lineax.MatrixLinearOperator(x.T @ x + 2 * jnp.eye(4))
        vector = jnp.ones(4)
        direct = lineax.linear_solve(operator, vector, lineax.LU()).value
        tagged = lineax.TaggedLinearOperator(operator, lineax.positive_semidefinite_tag)
        return direct, lineax.linear_solve(tagged, vector, lineax.CG(1e-6, 1e-6)).value

    return solve


def _optimistix(optimistix):
    def root(x):
        solver = optimistix.Newton(1e-5, 1e-5)
        return optimistix.root_find(lambda y, _: y**3 - x.mean(0) - 2, solver, jnp.ones(4)).value

    return root


def _diffrax(diffrax):
    def solve(x):
        term = diffrax.ODETerm(lambda t, y, _: -y)
        return diffrax.diffeqsolve(term, diffrax.Heun(), 0.0, 1.0, 0.1, x.mean(0)).ys

    return solve


def _diffrax_gradient(diffrax):
    def end(rates, x):
        term = diffrax.ODETerm(lambda t, y, rates: -y * rates)
        solved = diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, 1.0, 0.1, x.mean(0), args=rates, max_steps=16
        )
        return (solved.ys**2).sum()

    return lambda x: jax.value_and_grad(end)(jnp.ones(4), x)


def _diffrax_adaptive(diffrax):
    """Errors are scaled by ``math.sqrt`` of the number of elements, which is open."""
    controller = diffrax.PIDController(rtol=1e-3, atol=1e-6)

    def ends(x):
        term = diffrax.ODETerm(lambda t, y, _: -y)
        return [
            diffrax.diffeqsolve(
                term, solver, 0.0, 1.0, 0.1, x, stepsize_controller=controller, max_steps=64
            ).ys
            for solver in (diffrax.Bosh3(), diffrax.Kvaerno3())
        ]

    return ends


def _lanczos(matfree):
    """Raises where there are fewer rows than steps."""
    from matfree import decomp

    tridiagonal = decomp.tridiag_sym(3, materialize=True)

    def decomposed(x):
        matrix = x @ x.T + 3 * jnp.eye(x.shape[0])
        return jax.tree.leaves(tridiagonal(lambda v: matrix @ v, jnp.ones(x.shape[0])))[1]

    return decomposed


def _soft_sort(ott):
    from ott.tools import soft_sort

    return lambda x: (soft_sort.sort(x[:, 0], topk=2), soft_sort.quantile(x[:, 0], 0.5))


def _connectionist_loss(optax):
    labels = jnp.array([[1, 2, 1]])

    def loss(x):
        return optax.ctc_loss(x[None], jnp.zeros((1, x.shape[0])), labels, jnp.zeros((1, 3)))

    return loss


def _returns(rlax):
    def returns(x):
        rewards, values = x[:, 0], x[:, 1]
        discounts = 0.9 * jnp.ones_like(rewards)
        return (
            rlax.n_step_bootstrapped_returns(rewards, discounts, values, 3),
            rlax.truncated_generalized_advantage_estimation(
                rewards[:-1], discounts[:-1], 0.95, values
            ),
        )

    return returns


def _square_roots(flax):
    """Of matrices, with their eigenvalues, by rotations in loops."""

    def roots(x):
        matrix = x @ x.T + jnp.eye(x.shape[0])
        values = jnp.linalg.eigvals(matrix - jnp.tril(matrix, -2))
        return jax.scipy.linalg.sqrtm(matrix).real, jnp.sort(jnp.abs(values))

    return roots


def _by_length(flax):
    """A causal block that pads to even lengths and takes another path for short ones."""
    mix = jax.random.normal(jax.random.key(1), (4, 12)) / 2

    def block(x):
        length = x.shape[0]
        if length % 2:
            x = jnp.pad(x, ((0, 1), (0, 0)))
        q, k, v = jnp.split(x @ mix, 3, axis=-1)
        scores = q @ k.T * k.shape[-1] ** -0.5 / np.sqrt(length)
        if length > 4:
            places = jnp.arange(x.shape[0])
            scores = jnp.where(places[:, None] - places < 4, scores, -1e9)
        return (jax.nn.softmax(jnp.where(jnp.tri(x.shape[0], dtype=bool), scores, -1e9)) @ v)[
            :length
        ]

    return block


def _mamba(flax):
    """The selective scan of a state-space model."""
    mix = jax.random.normal(jax.random.key(1), (4, 3))

    def scanned(x):
        step = jax.nn.softplus(x)[..., None]
        decay, push = jnp.exp(-step), step * (x @ mix)[:, None, :] * x[..., None]

        def combine(a, b):
            return a[0] * b[0], b[0] * a[1] + b[1]

        _, state = jax.lax.associative_scan(combine, (decay * jnp.ones(3), push))
        return (state * (x @ mix)[:, None]).sum(-1)

    return scanned


def _equinox(eqx):
    network = eqx.nn.MLP(4, 3, 8, 2, key=jax.random.key(0))
    return jax.vmap(network)


def _flax(flax):
    import flax.linen as nn

    network = nn.Sequential([nn.Dense(8), nn.gelu, nn.LayerNorm(), nn.Dense(2)])
    variables = network.init(jax.random.key(0), jnp.ones((2, 4)))
    return lambda x: network.apply(variables, x)


QUICK = {
    "equinox": Case("equinox", _equinox),
    "flax": Case("flax", _flax),
    "cases of lengths": Case("flax", _by_length),
}
CASES = {
    "haiku": Case("haiku", _haiku),
    "haiku unrolled": Case("haiku", _haiku_lstm),
    "jraph": Case("jraph", _jraph),
    "jraph greatest": Case("jraph", _jraph_greatest),
    "numpyro": Case("numpyro", _numpyro),
    "distrax": Case("distrax", _distrax),
    "hidden states": Case("distrax", _hidden_states),
    "blackjax": Case("blackjax", _blackjax, tolerance=1e-3),
    "rlax": Case("rlax", _rlax),
    "optax": Case("optax", _optax, tolerance=1e-3),
    "tinygp": Case("tinygp", _tinygp),
    "tinygp gradient": Case("tinygp", _tinygp_gradient, tolerance=1e-3),
    "ott": Case("ott", _ott, tolerance=1e-3),
    "mctx": Case("mctx", _mctx, tolerance=1e-3),
    "mamba": Case("flax", _mamba),
    "jaxopt": Case("jaxopt", _jaxopt, tolerance=1e-3),
    "jaxlie": Case("jaxlie", _jaxlie),
    "lineax": Case("lineax", _lineax, tolerance=1e-3),
    "optimistix": Case("optimistix", _optimistix, tolerance=1e-3),
    "diffrax": Case("diffrax", _diffrax, tolerance=1e-3),
    "diffrax adaptive": Case("diffrax", _diffrax_adaptive, tolerance=1e-2),
    "lanczos": Case("matfree", _lanczos, tolerance=1e-2),
    "soft sort": Case("ott", _soft_sort, tolerance=1e-3),
    "connectionist loss": Case("optax", _connectionist_loss, tolerance=1e-3),
    "returns": Case("rlax", _returns),
    "square roots": Case("flax", _square_roots, tolerance=1e-3),
    "diffrax gradient": Case("diffrax", _diffrax_gradient, tolerance=1e-3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_functions_of_libraries_are_right_at_two_sizes(name: str) -> None:
    agrees(CASES[name])


@pytest.mark.parametrize("name", QUICK)
def test_functions_of_libraries_at_hand_are_right_at_two_sizes(name: str) -> None:
    agrees(QUICK[name])
