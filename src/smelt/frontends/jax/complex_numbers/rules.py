"""A rule for each primitive on complex operands: its computation on real parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers import factors, functions, spectra
from smelt.frontends.jax.complex_numbers.eigen import eig, schur
from smelt.frontends.jax.complex_numbers.fourier import transform
from smelt.frontends.jax.complex_numbers.parts import (
    Parts,
    Value,
    grouped,
    is_complex,
    real,
    real_arrays,
    real_dtype,
)
from smelt.frontends.jax.source_lines import place

Rule: TypeAlias = Callable[[compat.Equation, list[Any]], Sequence[Value]]

LINEAR = frozenset(
    (
        "add",
        "add_any",
        "sub",
        "neg",
        "reshape",
        "transpose",
        "broadcast_in_dim",
        "squeeze",
        "expand_dims",
        "concatenate",
        "stack",
        "unstack",
        "tile",
        "split",
        "rev",
        "slice",
        "pad",
        "gather",
        "dynamic_slice",
        "dynamic_update_slice",
        "select_n",
        "copy",
        "copy_p",
        "stop_gradient",
        "optimization_barrier",
        "device_put",
        "reshard",
        "reduce_sum",
        "cumsum",
        "scatter",
        "scatter-add",
        "scatter-sub",
        "reduce_window_sum",
        "empty",
        "empty2",
        "full_like",
    )
)
"""Primitives that apply to each part alone; a real operand is used for both parts."""

BILINEAR = frozenset(("mul", "dot_general", "conv_general_dilated", "ragged_dot_general"))
"""Primitives that are linear in each of their first two operands."""

ELEMENTWISE: Mapping[str, Callable[[Parts], Value]] = {
    "real": lambda z: z.re,
    "imag": lambda z: z.im,
    "abs": functions.magnitude,
    "conj": Parts.conjugate,
    "sign": functions.sign,
    "square": lambda z: z * z,
    "exp": functions.exp,
    "exp2": lambda z: functions.exp(z.scaled(jnp.log(jnp.asarray(2, z.re.dtype)))),
    "expm1": functions.expm1,
    "log": functions.log,
    "log1p": functions.log1p,
    "sqrt": functions.sqrt,
    "rsqrt": functions.rsqrt,
    "logistic": functions.logistic,
    "sin": functions.sin,
    "cos": functions.cos,
    "tan": functions.tan,
    "sinh": functions.sinh,
    "cosh": functions.cosh,
    "tanh": functions.tanh,
    "asin": functions.asin,
    "acos": functions.acos,
    "atan": functions.atan,
    "asinh": functions.asinh,
    "acosh": functions.acosh,
    "atanh": functions.atanh,
}

SPECIAL: Mapping[str, Callable[[Mapping[str, Any], list[Any]], Sequence[Value]]] = {
    "complex": lambda _, values: [_join_parts(*values)],
    "div": lambda _, values: [functions.divide(*values)],
    "pow": lambda _, values: [functions.power(*map(_as_complex, values))],
    "integer_pow": lambda params, values: [functions.integer_power(values[0], int(params["y"]))],
    "eq": lambda _, values: [_equal_mask(*values)],
    "ne": lambda _, values: [~_equal_mask(*values)],
    "reduce_prod": lambda params, values: [functions.product(values[0], tuple(params["axes"]))],
    "cumprod": lambda params, values: [
        functions.running_product(values[0], params["axis"], params["reverse"])
    ],
    "fft": lambda params, values: [
        transform(values[0], int(params["fft_type"]), params["fft_lengths"])
    ],
}


SOLVE = "custom_linear_solve"
"""The rule of this primitive runs a jaxpr, so it is in ``conversion.py``."""


def names() -> tuple[str, ...]:
    """Return the names of all primitives with a rule, sorted."""
    return tuple(sorted({*LINEAR, *BILINEAR, *ELEMENTWISE, *SPECIAL, *OTHERS, SOLVE}))


def find(name: str) -> Rule | None:
    """Return the rule of the primitive ``name``, or None."""
    if name in LINEAR:
        return _linear
    if name in BILINEAR:
        return _bilinear
    if name in ELEMENTWISE:
        return lambda equation, values: [ELEMENTWISE[name](_as_complex(values[0]))]
    if name in SPECIAL:
        return lambda equation, values: SPECIAL[name](equation.params, values)
    return OTHERS.get(name)


def _as_complex(value: Value) -> Parts:
    """Return ``value`` as ``Parts``; a real array gets the imaginary part 0."""
    return value if isinstance(value, Parts) else real(value)


def _join_parts(re: Any, im: Any) -> Parts:
    """Join two real arrays to ``Parts``.

    Derivatives of ``real`` and ``imag`` leave one of them of rank 0; it is broadcast.
    """
    shape = re.shape if re.ndim else im.shape
    return Parts(*(part if part.ndim else jnp.broadcast_to(part, shape) for part in (re, im)))


def _equal_mask(a: Parts, b: Parts) -> Any:
    """Return a mask of the elements that are equal in both parts."""
    return (a.re == b.re) & (a.im == b.im)


def _real_params(equation: compat.Equation) -> dict[str, Any]:
    """Return the parameters of ``equation`` for one real part, with real dtypes.

    The update function of a scatter is dropped, because the primitive's name already defines it.
    """
    params = {
        name: real_dtype(value) if is_complex(value) else value
        for name, value in equation.params.items()
    }
    if equation.primitive.name != "scatter" and "update_jaxpr" in params:
        params |= {"update_jaxpr": None, "update_consts": ()}
    return params


def _dtype(atom: compat.Atom) -> Any:
    """Return the dtype of ``atom``."""
    return atom.aval.dtype


def _linear(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Apply a linear primitive to the real parts, then to the imaginary parts."""
    params = _real_params(equation)
    real_operands = [value.re if isinstance(value, Parts) else value for value in values]
    imaginary_operands = [value.im if isinstance(value, Parts) else value for value in values]
    real = compat.rebind(equation, real_operands, params)
    imaginary = compat.rebind(equation, imaginary_operands, params)
    return [
        Parts(re, im) if is_complex(_dtype(out)) else re
        for re, im, out in zip(real, imaginary, equation.outvars, strict=True)
    ]


def _bilinear(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the product of two complex operands by four real products."""
    params, other_operands = _real_params(equation), values[2:]
    a, b = map(_as_complex, values[:2])

    def times(x: Any, y: Any) -> Any:
        """Return the primitive's product of two real parts."""
        return compat.rebind(equation, [x, y, *other_operands], params)[0]

    return [Parts(times(a.re, b.re) - times(a.im, b.im), times(a.re, b.im) + times(a.im, b.re))]


def _convert(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return a complex or real array in another element type; a real type keeps the real part."""
    (value,) = values
    target_dtype = _dtype(equation.outvars[0])
    if not is_complex(target_dtype):
        return [value.re.astype(target_dtype)]
    dtype, number = real_dtype(target_dtype), _as_complex(value)
    return [Parts(number.re.astype(dtype), number.im.astype(dtype))]


def _sort(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the operands sorted; a complex key becomes two keys, the real part first."""
    is_pair = [isinstance(value, Parts) for value in values]
    count = int(equation.params["num_keys"])
    keys = count + sum(is_pair[:count])
    params = {**equation.params, "num_keys": keys}
    return grouped(compat.rebind(equation, real_arrays(values), params), is_pair)


def _iota(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the element numbers as complex numbers whose imaginary part is 0."""
    return [real(compat.rebind(equation, values, _real_params(equation))[0])]


def _scatter_mul(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Multiply elements in place; each index occurs at most once.

    Raises Unsupported E105 unless ``unique_indices`` is set.
    """
    params = equation.params
    if not params["unique_indices"]:
        raise Unsupported(
            "E105",
            "multiplying in place is not supported on complex numbers at repeated indices",
            at=place(equation),
            why="a product of several complex factors is not a product of their parts",
            fix="pass unique_indices=True if no index is repeated",
        )
    operand, indices, factors = _as_complex(values[0]), values[1], _as_complex(values[2])
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    options = {name: params[name] for name in names}

    def spread(updates: Any) -> Any:
        """Return ``updates`` at their indices, zeros elsewhere."""
        return lax.scatter(jnp.zeros_like(operand.re), indices, updates, **options)

    is_indexed = spread(jnp.ones_like(factors.re)) != 0
    product = operand * Parts(spread(factors.re), spread(factors.im))
    return [
        Parts(
            jnp.where(is_indexed, product.re, operand.re),
            jnp.where(is_indexed, product.im, operand.im),
        )
    ]


OTHERS: Mapping[str, Rule] = {
    "cholesky": factors.cholesky,
    "convert_element_type": _convert,
    "eig": eig,
    "eigh": spectra.eigh,
    "lu": factors.lu,
    "qr": factors.qr,
    "schur": schur,
    "svd": spectra.svd,
    "triangular_solve": factors.triangular_solve,
    "iota": _iota,
    "scatter-mul": _scatter_mul,
    "sort": _sort,
}
