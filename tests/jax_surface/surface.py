"""JAX's public surface: every public callable of the modules that people compute with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

MODULES = (
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.image",
    "jax.scipy.linalg",
    "jax.scipy.signal",
    "jax.scipy.special",
    "jax.scipy.ndimage",
    "jax.scipy.fft",
    "jax.random",
)
DISTRIBUTIONS = "jax.scipy.stats"
"""Its submodules, each with ``pdf``, ``logpdf``, ``cdf`` and so on."""

NOT_COMPUTING = frozenset(
    {
        # Types, files, printing, and what looks at arrays without computing.
        *("asarray_chkfinite", "array_equal", "array_repr", "array_str", "can_cast", "dtype"),
        *(
            "finfo",
            "frombuffer",
            "fromfile",
            "fromfunction",
            "fromiter",
            "frompyfunc",
            "fromstring",
        ),
        *("from_dlpack", "get_printoptions", "iinfo", "isdtype", "iscomplexobj", "isrealobj"),
        *("isscalar", "issubdtype", "iterable", "load", "ndim", "printoptions", "promote_types"),
        *("result_type", "save", "savez", "set_printoptions", "shape", "size", "vectorize"),
        *("einsum_path", "broadcast_shapes", "poly1d", "ComplexWarning", "mask_indices"),
        *("apply_along_axis", "apply_over_axes", "piecewise", "key_impl", "default_prng_impl"),
        *("key_dtype", "get_scaled_dot_general_config"),
        # What JAX itself computes on some GPUs only.
        "scaled_matmul",
        # Functions of functions, tested where control flow and gradients are.
        *("associative_scan", "cond", "custom_linear_solve", "custom_root", "fori_loop", "map"),
        *("scan", "switch", "while_loop", "reduce", "reduce_window", "select_and_scatter"),
        *("composite", "platform_dependent"),
        # Numbers that JAX does not specify.
        *("jax.lax.empty", "jax.lax.rng_uniform"),
        # An array whose size depends on its numbers, which JAX traces for no argument.
        "trim_zeros",
        # Over devices.
        *("all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax"),
        *("pmean", "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary"),
        *("with_sharding_constraint", "ragged_all_to_all", "psend", "precv", "axis_index_groups"),
        *("reduce_scatter", "all_gather_invariant", "all_gather_reduced", "unreduced_psum"),
        # Tokens, attributes, shapes without arrays, sources of infeed.
        *(
            "after_all",
            "create_token",
            "infeed",
            "outfeed",
            "optimization_barrier",
            "stop_gradient",
            "shape_as_value",
        ),
        *(
            "broadcast_shapes",
            "padtype_to_pads",
            "conv_dimension_numbers",
            "conv_transpose_shape_tuple",
        ),
        *("conv_general_shape_tuple", "conv_general_permutations", "conv_shape_tuple", "dtypes"),
        *(
            "reduce_window_shape_tuple",
            "standard_insert_pspec",
            "dce_sink",
            "split_p",
            "is_finite_p",
        ),
    }
)


@dataclass(frozen=True)
class Entry:
    """One public callable: ``jax.numpy.add``."""

    module: str
    name: str
    function: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def entries() -> Iterator[Entry]:
    """The public callables, in the order of modules and names; aliases once a module."""
    for module in MODULES:
        yield from _of(module)
    stats = import_module(DISTRIBUTIONS)
    for name in sorted(vars(stats)):
        if inspect.ismodule(getattr(stats, name)) and not name.startswith("_"):
            yield from _of(f"{DISTRIBUTIONS}.{name}")
    yield from _of(DISTRIBUTIONS)


def _of(path: str) -> Iterator[Entry]:
    module = import_module(path)
    for name in sorted(vars(module)):
        found = getattr(module, name)
        if name.startswith("_") or not callable(found):
            continue
        if name in NOT_COMPUTING or f"{path}.{name}" in NOT_COMPUTING:
            continue
        if inspect.isclass(found) or not (getattr(found, "__module__", None) or "").startswith(
            "jax"
        ):
            continue
        if name.endswith("_p"):
            continue
        yield Entry(path, name, found)
