"""Guards that no graph of the tests of their pass needs yet. The list may only shrink.

A test of the API or of another pass holds some of them; for the others a graph is missing, or the
guard repeats what the rewriter refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

NOT_YET: Mapping[str, tuple[str, ...]] = {
    "const_elimination": (
        "not node.domain and node.op_type in NEVER",
        "made <= max(freed, limit) or node in self.together",
    ),
    "expand_attention": ("len(m.root.inputs) > 6 or cached != (set(past) != {None})",),
    "fold_bool_compare": ("not bounds or m.root.graph is not b.model.graph or shape is None",),
    "fold_control_flow": (
        "not all((isinstance(v.type, _KNOWN) for v in (*node.outputs, *body.inputs)))",
    ),
    "fold_reshape_pairs": (
        "not same_shape(value.shape, result) or not same_shape(self.shapes[value], first)",
    ),
    "fuse_attention": ("keys.groups != values.groups",),
    "fuse_attention_cache": (
        "past.shape is None or new.shape is None or (not len(past.shape) == len(new.shape) == 4)",
    ),
    "fuse_group_norm": (
        "not isinstance(count, int) or not isinstance(channels, int) or channels % max(count, 1)",
    ),
    "fuse_rotary_embedding": ("not isinstance(heads, int) or not isinstance(size, int)",),
    "fuse_softmax": ("x.shape is None or x.dtype is None or (not x.dtype.is_floating_point())",),
    "image_input_preprocess": ("complex_type_of(value) is not None",),
    "inline_operator_bodies": ("results is None",),
    "legalize_dot_general": ("plan is None",),
    "level_loop_states": ("reader.domain or op_type not in FIRST_ONLY | BROADCASTING",),
    "materialize_symbolic_dims": (
        "not isinstance(size, int) or isinstance(size, bool) or size < 0",
        "shape is None or not any((symbols_of(dim) & sizes.keys() for dim in shape.dims))",
    ),
    "offset_to_bias": ("np.broadcast(bias, steps).size > max(bias.size, sum(lengths))",),
    "reduce_transposes": ("not outside",),
    "strided_slices_to_transpose": (
        "split is None or joined is None",
        "len(starts) != prod(steps.values())",
    ),
    "unmerge_matmul": ("lifted is None",),
    "unmerge_transpose": (
        "sizes.count(-1) > 1 or 0 in dims or (not counted)",
        "not (same_dim(merged[first], of_group) or all(map(is_positive, dims)))",
    ),
}
"""By pass, the conditions."""
