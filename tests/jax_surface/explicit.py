"""Arguments of callables that no general guess fits, by name or by path where names clash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

Cases = list[tuple[tuple[Any, ...], dict[str, Any]]]


def _f(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def _i(*items: int) -> np.ndarray:
    return np.asarray(items, np.int32)


def _spd(t: Any) -> np.ndarray:
    a = _f(4, 4, dtype=t)
    return a @ a.T + 4 * np.eye(4, dtype=t)


def _key() -> np.ndarray:
    return np.asarray(jax.random.key_data(jax.random.key(5)))


def _rows(*shape: int) -> np.ndarray:
    """Positive numbers whose rows sum to 1."""
    numbers = np.exp(_f(*shape))
    return numbers / numbers.sum(-1, keepdims=True)


_GATHER = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)
_SCATTER = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
_AT = np.asarray([[2], [0]], np.int32)


def _scatter(t: Any) -> Cases:
    return [((_f(4, 3, dtype=t), _AT, _f(2, 3, dtype=t, seed=1), _SCATTER), {})]


def _window(t: Any) -> Cases:
    return [((_f(1, 6, 6, 2, dtype=t), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), {})]


EXPLICIT: dict[str, Callable[[Any], Cases]] = {
    "gather": lambda t: [((_f(4, 3, dtype=t), _AT, _GATHER, (1, 3)), {})],
    **dict.fromkeys(
        ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub"),
        _scatter,
    ),
    "scatter_apply": lambda t: [
        ((_f(4, 3, dtype=t), _AT, lax.neg, _SCATTER), {"update_shape": (2, 3)})
    ],
    "dynamic_slice": lambda t: [((_f(4, 5, dtype=t), [1, 2], (2, 2)), {})],
    "dynamic_slice_in_dim": lambda t: [((_f(4, 5, dtype=t), 1, 2, 1), {})],
    "dynamic_index_in_dim": lambda t: [((_f(4, 5, dtype=t), 1, 1), {})],
    "dynamic_update_slice": lambda t: [((_f(4, 5, dtype=t), _f(2, 2, dtype=t), [1, 4]), {})],
    "dynamic_update_slice_in_dim": lambda t: [((_f(4, 5, dtype=t), _f(4, 2, dtype=t), 4, 1), {})],
    "dynamic_update_index_in_dim": lambda t: [((_f(4, 5, dtype=t), _f(4, dtype=t), 1, 1), {})],
    "slice": lambda t: [((_f(4, 5, dtype=t), (1, 0), (4, 5), (2, 1)), {})],
    "slice_in_dim": lambda t: [((_f(4, 5, dtype=t), 1, 5, 2, 1), {})],
    "index_in_dim": lambda t: [((_f(4, 5, dtype=t), 1, 1), {})],
    "index_take": lambda t: [((_f(4, 5, dtype=t), (_i(1, 2),), (0,)), {})],
    "jax.lax.pad": lambda t: [((_f(3, 4, dtype=t), np.asarray(1, t), ((1, 2, 0), (0, -1, 1))), {})],
    "conv": lambda t: [((_f(1, 2, 6, 6, dtype=t), _f(3, 2, 3, 3, dtype=t), (1, 1), "SAME"), {})],
    "conv_with_general_padding": lambda t: [
        (
            (
                _f(1, 2, 6, 6, dtype=t),
                _f(3, 2, 3, 3, dtype=t),
                (1, 2),
                ((1, 0), (2, 1)),
                (1, 1),
                (2, 1),
            ),
            {},
        )
    ],
    "conv_general_dilated": lambda t: [
        (
            (_f(1, 2, 6, 6, dtype=t), _f(3, 2, 3, 3, dtype=t), (1, 2), "SAME"),
            {"rhs_dilation": (1, 2)},
        )
    ],
    "conv_general_dilated_local": lambda t: [
        ((_f(1, 2, 4, 4, dtype=t), _f(3, 8, 3, 3, dtype=t), (1, 1), "VALID", (2, 2)), {})
    ],
    "conv_general_dilated_patches": lambda t: [
        ((_f(1, 2, 6, 6, dtype=t), (2, 2), (1, 2), "VALID"), {})
    ],
    "conv_transpose": lambda t: [
        ((_f(1, 5, 5, 2, dtype=t), _f(3, 3, 2, 4, dtype=t), (2, 2), "SAME"), {})
    ],
    "dot_general": lambda t: [
        ((_f(2, 3, 4, dtype=t), _f(2, 4, 5, dtype=t), (((2,), (1,)), ((0,), (0,)))), {})
    ],
    "scaled_dot": lambda t: [
        (
            (_f(2, 3, 8), _f(2, 8, 5, seed=1)),
            {
                "lhs_scale": _f(2, 3, 2, seed=2),
                "rhs_scale": _f(2, 4, 5, seed=3),
                "preferred_element_type": np.float32,
            },
        )
    ],
    "scaled_dot_general": lambda t: [
        ((_f(2, 3, 64), _f(2, 5, 64, seed=1), (((2,), (2,)), ((0,), (0,)))), {"configs": configs})
        for configs in (None, [jax.nn.get_scaled_dot_general_config("mxfp8")] * 3)
    ],
    "dsplit": lambda t: [((_f(2, 3, 4, dtype=t), 2), {})],
    "unpackbits": lambda t: [((np.asarray([[3, 200]], np.uint8),), {"axis": 1})],
    "jax.numpy.linalg.cross": lambda t: [((_f(4, 3, dtype=t), _f(4, 3, dtype=t, seed=1)), {})],
    "matrix_power": lambda t: [((_spd(t), 3), {}), ((_spd(t), -1), {})],
    "multi_dot": lambda t: [
        (([_f(2, 3, dtype=t), _f(3, 4, dtype=t), _f(4, 5, dtype=t)],), {}),
    ],
    "jax.lax.real": lambda t: [((_f(3, dtype=t) + 1j * _f(3, dtype=t, seed=1),), {})],
    "jax.lax.imag": lambda t: [((_f(3, dtype=t) + 1j * _f(3, dtype=t, seed=1),), {})],
    "jax.lax.squeeze": lambda t: [((_f(3, 1, 4, dtype=t), (1,)), {})],
    "jax.lax.split": lambda t: [((_f(3, 6, dtype=t), (1, 2, 3), 1), {})],
    **dict.fromkeys(
        ("reduce_and", "reduce_or", "reduce_xor"),
        lambda t: [((np.asarray([[6, 3, 5], [-1, 7, -8]], np.int32), (1,)), {})],
    ),
    "ragged_dot": lambda t: [((_f(5, 3, dtype=t), _f(2, 3, 4, dtype=t), _i(2, 3)), {})],
    "batch_matmul": lambda t: [((_f(2, 3, 4, dtype=t), _f(2, 4, 5, dtype=t)), {})],
    "broadcast_in_dim": lambda t: [((_f(3, dtype=t), (2, 3), (1,)), {})],
    "broadcast_to_rank": lambda t: [((_f(3, dtype=t), 2), {})],
    "full": lambda t: [(((2, 3), 1.5, t), {})],
    "full_like": lambda t: [((_f(2, 3, dtype=t), 1.5), {})],
    "iota": lambda t: [((t, 5), {})],
    "broadcasted_iota": lambda t: [((t, (3, 4), 1), {})],
    "select_n": lambda t: [((_i(0, 1, 1), _f(3, dtype=t), _f(3, dtype=t, seed=1)), {})],
    "reduce_window": _window,
    "reduce_precision": lambda t: [((_f(3, 4, dtype=t), 5, 4), {})],
    "jax.lax.argmax": lambda t: [((_f(3, 4, dtype=t), 1), {"index_dtype": np.int32})],
    "jax.lax.argmin": lambda t: [((_f(3, 4, dtype=t), 1), {"index_dtype": np.int32})],
    "top_k": lambda t: [((_f(3, 4, dtype=t), 2), {})],
    "approx_max_k": lambda t: [((_f(3, 40, dtype=np.float32), 2), {})],
    "approx_min_k": lambda t: [((_f(3, 40, dtype=np.float32), 2), {})],
    "sort_key_val": lambda t: [((_f(5, dtype=t), _f(5, dtype=t, seed=1)), {})],
    "triangular_solve": lambda t: [
        ((_spd(t), _f(4, 2, dtype=t)), {"left_side": True, "lower": True})
    ],
    # Of a system without a solution: a residual that is 0 would be nothing but rounding.
    "lstsq": lambda t: [
        ((_f(6, 3, dtype=t), _f(6, dtype=t, seed=1)), {}),
        ((_f(6, 3, dtype=t), _f(6, 2, dtype=t, seed=1)), {}),
    ],
    "cholesky": lambda t: [((_spd(t),), {})],
    "cholesky_update": lambda t: [((np.linalg.cholesky(_spd(t)).T.copy(), _f(4, dtype=t)), {})],
    "cho_solve": lambda t: [(((np.linalg.cholesky(_spd(t)), True), _f(4, dtype=t)), {})],
    "solve_triangular": lambda t: [((_spd(t), _f(4, dtype=t)), {"lower": True})],
    "tridiagonal_solve": lambda t: [
        (
            (_f(5, dtype=t), _f(5, dtype=t, seed=1) + 4, _f(5, dtype=t, seed=2), _f(5, 2, dtype=t)),
            {},
        )
    ],
    "solve_sylvester": lambda t: [((_spd(t), _spd(t), _f(4, 4, dtype=t)), {})],
    "eigh_tridiagonal": lambda t: [((_f(5, dtype=t), _f(4, dtype=t)), {"eigvals_only": True})],
    "lu_pivots_to_permutation": lambda t: [((_i(1, 1, 2), 3), {})],
    "householder_product": lambda t: [((_f(4, 3, dtype=t), _f(3, dtype=t)), {})],
    "ormqr": lambda t: [((_f(4, 3, dtype=t), _f(3, dtype=t), _f(4, 2, dtype=t)), {})],
    "einsum": lambda t: [(("bij,bjk->bik", _f(2, 3, 4, dtype=t), _f(2, 4, 5, dtype=t)), {})],
    "tensordot": lambda t: [((_f(3, 4, dtype=t), _f(4, 5, dtype=t)), {"axes": 1})],
    "convolve": lambda t: [((_f(6, dtype=t), _f(3, dtype=t)), {})],
    "interp": lambda t: [((_f(5, dtype=t), np.linspace(-2, 2, 6, dtype=t), _f(6, dtype=t)), {})],
    "jax.lax.select": lambda t: [
        ((_f(4, dtype=t) > 0, _f(4, dtype=t), _f(4, dtype=t, seed=1)), {}),
    ],
    "jax.numpy.select": lambda t: [
        (([_f(4, dtype=t) > 0, _f(4, dtype=t) > -1], [_f(4, dtype=t), _f(4, dtype=t, seed=1)]), {})
    ],
    "choose": lambda t: [
        ((_i(0, 1, 1), [_f(3, dtype=t), _f(3, dtype=t, seed=1)]), {"mode": "clip"})
    ],
    "put_along_axis": lambda t: [
        (
            (_f(3, 4, dtype=t), np.asarray([[1], [2], [0]], np.int32), np.asarray(9, t), 1),
            {"inplace": False},
        )
    ],
    "put": lambda t: [((_f(6, dtype=t), _i(1, 3), _f(2, dtype=t)), {"inplace": False})],
    "fill_diagonal": lambda t: [((_f(4, 4, dtype=t), np.asarray(2, t)), {"inplace": False})],
    "place": lambda t: [((_f(4, dtype=t), _f(4, dtype=t) > 0, _f(4, dtype=t)), {"inplace": False})],
    "unravel_index": lambda t: [((_i(3, 5), (2, 4)), {})],
    "ravel_multi_index": lambda t: [(((_i(0, 1), _i(2, 3)), (2, 4)), {"mode": "clip"})],
    "bincount": lambda t: [((_i(0, 1, 1, 3),), {"length": 5})],
    "histogram": lambda t: [((_f(20, dtype=t),), {"bins": 4, "range": (-2, 2)})],
    "digitize": lambda t: [((_f(6, dtype=t), np.asarray([-1, 0, 1], t)), {})],
    "nonzero": lambda t: [((_i(0, 1, 1, 0),), {"size": 3})],
    "argwhere": lambda t: [((_i(0, 1, 1, 0),), {"size": 3})],
    "flatnonzero": lambda t: [((_i(0, 1, 1, 0),), {"size": 3})],
    "unique": lambda t: [((_i(3, 1, 1, 0),), {"size": 4})],
    "unique_values": lambda t: [((_i(3, 1, 1, 0),), {"size": 4})],
    "unique_counts": lambda t: [((_i(3, 1, 1, 0),), {"size": 4})],
    "unique_inverse": lambda t: [((_i(3, 1, 1, 0),), {"size": 4})],
    "unique_all": lambda t: [((_i(3, 1, 1, 0),), {"size": 4})],
    "union1d": lambda t: [((_i(3, 1), _i(1, 0)), {"size": 4})],
    "intersect1d": lambda t: [((_i(3, 1), _i(1, 0)), {"size": 2})],
    "setdiff1d": lambda t: [((_i(3, 1), _i(1, 0)), {"size": 2})],
    "setxor1d": lambda t: [((_i(3, 1), _i(1, 0)), {"size": 4})],
    "compress": lambda t: [((np.asarray([True, False, True]), _f(3, 4, dtype=t), 0), {"size": 2})],
    "extract": lambda t: [((_f(4, dtype=t) > 0, _f(4, dtype=t)), {"size": 3})],
    "repeat": lambda t: [((_f(3, 4, dtype=t), 2, 1), {})],
    "one_hot": lambda t: [((_i(0, 2, 1), 4), {})],
    "dot_product_attention": lambda t: [
        ((_f(2, 5, 2, 4), _f(2, 5, 2, 4, seed=1), _f(2, 5, 2, 4, seed=2)), {"is_causal": True})
    ],
    "jax.image.resize": lambda t: [((_f(1, 5, 6, 2, dtype=t), (1, 8, 3, 2), "bilinear"), {})],
    "scale_and_translate": lambda t: [
        (
            (
                _f(5, 6, dtype=t),
                (8, 7),
                (0, 1),
                np.asarray([1.5, 0.7], t),
                np.asarray([0.2, -1], t),
                "linear",
            ),
            {},
        )
    ],
    "map_coordinates": lambda t: [
        ((_f(5, 6, dtype=t), [_f(3, dtype=t) + 2, _f(3, dtype=t) + 2], 1), {})
    ],
    "fft": lambda t: [((_f(2, 6, dtype=t),), {})],
    "jax.lax.fft": lambda t: [
        ((_f(2, 6, dtype=t) + 0j, lax.FftType.FFT, (6,)), {}),
        ((_f(2, 6, dtype=t), "RFFT", (6,)), {}),
        ((_f(2, 4, dtype=t) + 0j, "IRFFT", (6,)), {}),
    ],
    "multivariate_normal": lambda t: [
        (
            (
                np.asarray(jax.random.key_data(jax.random.key(0))),
                _f(3),
                np.eye(3, dtype=np.float32),
            ),
            {},
        )
    ],
    "stft": lambda t: [((_f(64, dtype=t),), {"nperseg": 16})],
    "istft": lambda t: [((_f(9, 5, dtype=t) + 0j,), {"nperseg": 16})],
    "welch": lambda t: [((_f(64, dtype=t),), {"nperseg": 16})],
    "csd": lambda t: [((_f(64, dtype=t), _f(64, dtype=t, seed=1)), {"nperseg": 16})],
    "savgol_filter": lambda t: [((_f(20, dtype=t), 5, 2), {})],
    # Of numbers for which its series ends soon in JAX itself.
    "hyp2f1": lambda t: [
        ((np.asarray(0.5, t), np.asarray(1.5, t), np.asarray(2.5, t), _rows(3, 4).astype(t)), {})
    ],
    **dict.fromkeys(
        ("jax.scipy.stats.multinomial.logpmf", "jax.scipy.stats.multinomial.pmf"),
        lambda t: [((_i(1, 4, 2), np.asarray(7, np.int32), _rows(3).astype(t)), {})],
    ),
    "sph_harm_y": lambda t: [((_i(2), _i(1), _f(1, dtype=t), _f(1, dtype=t)), {"n_max": 3})],
    "lpmn_values": lambda t: [((3, 3, np.asarray([0.3, 0.5], t), True), {})],
    "lpmn": lambda t: [((3, 3, np.asarray([0.3, 0.5], t)), {})],
    "expn": lambda t: [((_i(1, 2, 5), np.asarray([0.3, 2.5, 7], t)), {})],
    "bessel_jn": lambda t: [((np.asarray([0.3, 2.5], t),), {"v": 3})],
    "jax.random.PRNGKey": lambda t: [((np.asarray(7, np.int32),), {})],
    "jax.random.key": lambda t: [((np.asarray(7, np.int32),), {})],
    "jax.random.triangular": lambda t: [((_key(), _f(3), _f(3) + 1, _f(3) + 3), {})],
    "jax.random.multinomial": lambda t: [
        ((_key(), np.asarray([3.0, 20.0], np.float32), _rows(2, 3)), {})
    ],
    "jax.random.categorical": lambda t: [
        ((_key(), _f(4, 3)), {"axis": 0, "shape": (5, 3)}),
        ((_key(), _f(4, 3)), {"replace": False, "shape": (2, 4)}),
    ],
    "jax.scipy.linalg.funm": lambda t: [((_spd(t), jax.numpy.exp), {})],
    "jax.scipy.linalg.leslie": lambda t: [((_f(4, dtype=t), _f(3, dtype=t)), {})],
    "jax.scipy.linalg.hadamard": lambda t: [((4, t), {})],
    "jax.scipy.linalg.lu_solve": lambda t: [
        (((_spd(t), _i(1, 1, 2, 3)), _f(4, dtype=t), trans), {}) for trans in (0, 1)
    ],
}
