"""Every pass by name: ours, listed here by folder, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint

from smelt.errors import UsageError, did_you_mean
from smelt.extensions import points, warn_left_out, without_plugins
from smelt.passes.base import Pass
from smelt.registry import Owner, Registry, named_by, owner_of_point
from smelt.spans import span

FOLDERS: Mapping[str, tuple[str, ...]] = {
    "canonicalize": ("legalize_dot_general", "max_to_relu", "swap_dot_general"),
    "simplify": (
        "cast_optimization",
        "clip_of_min_max",
        "const_elimination",
        "divide_to_multiply",
        "fold_bool_compare",
        "fold_control_flow",
        "fold_index_wrap",
        "fold_reshape_pairs",
        "fuse_floor_mod",
        "fuse_reduce_keepdims",
        "fuse_squeeze_expand_dims",
        "fuse_stack_split",
        "hoist_bias",
        "merge_consecutive_concats",
        "merge_consecutive_paddings",
        "merge_consecutive_relus",
        "merge_consecutive_reshapes",
        "merge_consecutive_slices",
        "merge_constant_terms",
        "noop_elimination",
        "remove_redundant_ops",
        "remove_symbolic_reshape",
        "select_optimization",
        "sink_expand",
        "sink_unit_dims",
        "slices_to_split",
        "unroll_sequences",
        "uplift_while_to_for",
    ),
    "activation": (
        "fuse_gelu_exact",
        "fuse_gelu_sigmoid_approximation",
        "fuse_gelu_tanh_approximation",
        "fuse_hard_swish",
        "fuse_leaky_relu",
        "fuse_prelu",
        "fuse_sigmoid",
        "fuse_swish",
        "prelu_to_lrelu",
    ),
    "attention": (
        "drop_softmax_guard",
        "expand_attention",
        "fuse_attention",
        "fuse_attention_cache",
        "fuse_rotary_embedding",
        "fuse_softmax",
    ),
    "convolution": (
        "add_conv_transpose_output_shape",
        "compose_conv1d",
        "drop_taps_in_padding",
        "fuse_conv_batchnorm",
        "fuse_conv_bias",
        "fuse_conv_scale",
        "fuse_dilated_conv",
        "fuse_pad_conv",
    ),
    "norms": (
        "fuse_elementwise_to_batchnorm",
        "fuse_group_norm",
        "fuse_layernorm_or_instancenorm",
        "fuse_reduce_mean",
        "sum_residuals",
    ),
    "products": (
        "dot_merger",
        "einsum_to_matmul",
        "expand_dynamic_linear",
        "fuse_linear_bias",
        "fuse_linear_scale",
        "fuse_matmul_weight_bias",
        "fuse_transpose_matmul",
        "fuse_transpose_matmul_contrib",
        "offset_to_bias",
        "unflatten_matmul",
        "unmerge_matmul",
    ),
    "tensors": (
        "concat_to_pixel_shuffle",
        "detect_concat_interleave",
        "expand_high_rank_reshape_and_transpose",
        "fold_affine_indices",
        "fuse_onehot_matmul_to_gather",
        "gather_to_split_fusion",
        "guard_negative_gather_indices",
        "rank0_expand_dims_swap",
        "replace_stack_reshape",
        "use_reflection_padding",
    ),
    "functions": ("inline_operator_bodies", "level_loop_states", "sink_into_branches"),
    "layout": (
        "hoist_transposes",
        "merge_consecutive_transposes",
        "reduce_transposes",
        "transpose_to_reshape",
        "unmerge_transpose",
    ),
    "quantize": (
        "dequantize_quantize_pair_elimination",
        "dequantize_to_constexpr",
        "distributive_quantized_binary_op_scale_normalization",
        "int_op_canonicalization",
        "merge_affine_dequantize_with_consecutive_ops",
        "nullify_redundant_quantization_zero_point",
        "unsigned_activations",
    ),
    "precision": ("add_fp16_cast", "widen_half"),
    "interface": (
        "freeze_defaults",
        "image_input_preprocess",
        "materialize_symbolic_dims",
        "raise_opset",
        "sanitize_input_output_names",
        "update_output_dtypes",
        "zip_map_to_tensor",
    ),
    "cleanup": (
        "const_deduplication",
        "dead_code_elimination",
        "dedup_op_and_var_names",
        "loop_invariant_elimination",
        "topological_reorder",
    ),
}
"""Our passes: each is the object of that name in the file of that name."""

ENTRY_POINTS = "smelt.passes"


def _fill() -> None:
    with span("import passes"):
        for folder, names in FOLDERS.items():
            for name in names:
                place = f"smelt.passes.{folder}.{name}"
                PASSES.add(name, getattr(import_module(place), name), Owner(place))
    for point in points(ENTRY_POINTS):
        name = point.name.replace("-", "_")
        PASSES.add_late(name, partial(_installed, point, name), owner_of_point(point))


def _installed(point: EntryPoint, name: str) -> Pass:
    return replace(named_by(point, Pass, "pass"), name=name)


PASSES: Registry[str, Pass] = Registry(
    "E605", lambda name: f"passes are called {name.replace('_', '-')!r}", _fill
)


def passes() -> Mapping[str, Pass]:
    """All passes by name, ours first; raises UsageError E605 if two share a name.

    Those of installed packages are called as their entry points are; broken ones are left out.
    """
    missing = broken()
    return {name: PASSES[name] for name in PASSES if name not in missing}


def installed() -> Mapping[str, Pass]:
    """The passes of installed packages, by name."""
    return {name: pass_ for name, pass_ in passes().items() if PASSES.owner(name).package}


def broken() -> Mapping[str, str]:
    """Why passes of installed packages cannot be used, by name; warns of each."""
    found = {}
    for name in PASSES:
        try:
            PASSES[name]
        except UsageError as error:
            found[name] = f"package {PASSES.owner(name).package}: {error.why}"
            warn_left_out(name, PASSES.owner(name).package, error.why)
    return found


def find_pass(name: str) -> Pass:
    """The pass spelled ``name``, with hyphens or underscores; raises UsageError E601.

    Raises UsageError E615 for one of an installed package that cannot be loaded.
    """
    plain = name.replace("-", "_")
    if plain in PASSES:
        return PASSES[plain]
    raise UsageError(
        "E601",
        f"there is no pass {name!r}",
        why="plug-ins are left out (--no-plugins)" if without_plugins() else "",
        fix=did_you_mean(
            name.replace("_", "-"),
            [known.replace("_", "-") for known in PASSES],
            "`smelt passes` lists all",
        ),
    )
