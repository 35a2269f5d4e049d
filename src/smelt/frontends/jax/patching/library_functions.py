"""The functions of JAX, flax and equinox that smelt replaces while it traces.

Each is listed with the parameters that the replacement expects. If a library renames the function
or changes its parameters, smelt traces the library's own code; that takes longer and gives the same
results.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.frontends.jax import frames


@dataclass(frozen=True)
class LibraryFunction:
    """A function at ``target`` (``module:attribute.path``) and its parameters' names in order."""

    target: str
    parameters: tuple[str, ...]


NORMALIZED = ("x", "mean", "var")
SCALED = ("reduction_axes", "feature_axes", "dtype")

SOURCE_INFO = LibraryFunction(frames.SOURCE_INFO, ("fun",))
SCAN_LENGTH = LibraryFunction(
    "jax._src.lax.control_flow.loops:_infer_scan_length", ("xs_flat", "xs_avals", "length")
)
SEARCH_SORTED = LibraryFunction(
    "jax._src.numpy.hijax:searchsorted_via_expand",
    ("sorted_arr", "query", "side", "dimension", "batch_dims", "method", "dtype"),
)
ARANGE = LibraryFunction(
    "jax.numpy:arange", ("start", "stop", "step", "dtype", "device", "out_sharding")
)
ARANGE_INSIDE = LibraryFunction("jax._src.numpy:arange", ARANGE.parameters)
DIAG_INDICES = LibraryFunction("jax.numpy:diag_indices", ("n", "ndim"))
DIAG_INDICES_INSIDE = LibraryFunction("jax._src.numpy.lax_numpy:diag_indices", ("n", "ndim"))
CONVOLVE = LibraryFunction(
    "jax._src.numpy.lax_numpy:_conv",
    ("x", "y", "mode", "op", "precision", "preferred_element_type"),
)
CONCRETE = LibraryFunction("jax._src.core:concrete_or_error", ("force", "val", "context"))
FFT_SIZES = LibraryFunction("jax._src.numpy.fft:map", ())
ATTENTION_RANGE = LibraryFunction("jax._src.nn.functions:range", ())
RFFTFREQ = LibraryFunction("jax.numpy.fft:rfftfreq", ("n", "d", "dtype", "device"))
INDICES = LibraryFunction("jax._src.numpy.indexing:_parse_indices", ("indices", "shape"))
SQUEEZE = LibraryFunction("jax._src.numpy.lax_numpy:_squeeze", ("a", "axis"))
SPLIT = LibraryFunction(
    "jax._src.numpy.lax_numpy:_split", ("op", "ary", "indices_or_sections", "axis")
)
PAD_WRAP = LibraryFunction("jax._src.numpy.lax_numpy:_pad_wrap", ("array", "pad_width"))
PAD_MIRROR = LibraryFunction(
    "jax._src.numpy.lax_numpy:_pad_symmetric_or_reflect",
    ("array", "pad_width", "mode", "reflect_type"),
)
SHUFFLE = LibraryFunction("jax._src.random.core:_shuffle", ("key", "x", "axis"))
ASSOCIATIVE_SCAN = LibraryFunction("jax.lax:associative_scan", ("fn", "elems", "reverse", "axis"))
INDEXER_LEAVES = LibraryFunction("jax._src.state.indexing:NDIndexer.tree_flatten", ("self",))
SOLVE = LibraryFunction("jax._src.lax.linalg:_solve", ("a", "b"))
TOEPLITZ = LibraryFunction("jax._src.scipy.linalg:_toeplitz", ("c", "r"))
DCT_INTERLEAVE = LibraryFunction("jax._src.scipy.fft:_dct_interleave", ("x", "axis"))
DCT_DEINTERLEAVE = LibraryFunction("jax._src.scipy.fft:_dct_deinterleave", ("x", "axis"))
CONSTANT = LibraryFunction("jax._src.lax.lax:_const", ("example", "val"))
JAX_ATTENTION = LibraryFunction(
    "jax.nn:dot_product_attention",
    (
        *("query", "key", "value", "bias", "mask", "scale", "is_causal"),
        *("query_seq_lengths", "key_value_seq_lengths", "local_window_size"),
        *("implementation", "return_residual"),
    ),
)

FLAX_PARAMETER = LibraryFunction(
    "flax.core.scope:Scope.param", ("self", "name", "init_fn", "init_args", "unbox", "init_kwargs")
)
NNX_LAYER_NORM = LibraryFunction(
    "flax.nnx.nn.normalization:LayerNorm.__call__", ("self", "x", "mask")
)
NNX_CONV = LibraryFunction("flax.nnx.nn.linear:Conv.__call__", ("self", "inputs", "out_sharding"))
NNX_GROUP_NORM = LibraryFunction(
    "flax.nnx.nn.normalization:GroupNorm.__call__", ("self", "x", "mask")
)
NNX_NORMALIZE = LibraryFunction(
    "flax.nnx.nn.normalization:_normalize", (*NORMALIZED, "scale", "bias", *SCALED, "epsilon")
)
LINEN_LAYER_NORM = LibraryFunction(
    "flax.linen.normalization:LayerNorm.__call__", ("self", "x", "mask")
)
LINEN_GROUP_NORM = LibraryFunction(
    "flax.linen.normalization:GroupNorm.__call__", ("self", "x", "mask")
)
LINEN_NORMALIZE = LibraryFunction(
    "flax.linen.normalization:_normalize",
    (
        *("mdl", *NORMALIZED, *SCALED, "param_dtype", "epsilon", "use_bias", "use_scale"),
        *("bias_init", "scale_init", "force_float32_reductions"),
    ),
)

EQUINOX_LAYER_NORM = LibraryFunction(
    "equinox.nn._normalisation:LayerNorm.__call__", ("self", "x", "state", "key")
)
ERROR_IF = ("x", "pred", "index", "msgs", "on_error")
EQUINOX_ERROR_IF = LibraryFunction("equinox._errors:branched_error_if_impl", ERROR_IF)
EQUINOX_ERROR_IF_JIT = LibraryFunction("equinox._errors:branched_error_if_impl_jit", ERROR_IF)
EQUINOX_CONV = LibraryFunction("equinox.nn._conv:Conv.__call__", ("self", "x", "key"))
EQUINOX_ATTENTION = LibraryFunction(
    "equinox.nn._attention:dot_product_attention",
    ("query", "key_", "value", "mask", "dropout", "key", "inference"),
)
EQUINOX_ROTARY = LibraryFunction(
    "equinox.nn._embedding:RotaryPositionalEmbedding.__call__", ("self", "x", "key")
)

ALL = tuple(item for item in tuple(globals().values()) if isinstance(item, LibraryFunction))
