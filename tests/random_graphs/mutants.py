"""The wrong passes that random graphs have to catch: each lacks a condition, or mistakes a sign."""

from __future__ import annotations

from random_graphs.mutation import Mutant

from smelt.passes.registry import own_passes

FOLDER = {pass_.name: place.split(".")[2] for place, pass_ in own_passes()}


def _mutants(focus: str, pass_: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Changes as ``(file:function or function, old, new)``, the file beside that of the pass."""
    stem = pass_.replace("-", "_")
    folder = f"passes.{FOLDER[stem]}."
    return [
        Mutant(focus, pass_, f"{folder}{f if ':' in f else f'{stem}:{f}'}", old, new)
        for f, old, new in changes
    ]


MUTANTS: list[Mutant] = [
    *_mutants(
        "attention",
        "fuse-attention",
        ("attention", "not in (-1, 3)", "not in (-1, -2, 3)"),
        ("_scale", "given / float(number) if factor is None", "given if factor is None"),
        ("_bias", "low > LOW", "low > 0"),
        ("_full", "len(shape) not in (2, 4)", "len(shape) > 4"),
    ),
    *_mutants(
        "attention",
        "dot-merger",
        ("_merge", "if rows:", "if False:"),
    ),
    *_mutants(
        "attention",
        "hoist-bias",
        ("bias_of_split_rows", "any(dim != 1 for dim in c.shape[:-2])", "False"),
    ),
    *_mutants(
        "networks",
        "fuse-conv-bias",
        ("conv_plus", "sign * term", "term"),
        ("minus_conv", "-np.ones", "np.ones"),
        ("minus_conv", "term - conv.exact_bias()", "term + conv.exact_bias()"),
        (
            "output_channels:Convolution.per_channel",
            "array.size != shape[axis]",
            "array.size not in (1, self.channels)",
        ),
    ),
    *_mutants(
        "networks",
        "fuse-conv-scale",
        ("conv_times", '1 / scale if m.root.op_type == "Div" else scale', "scale"),
        ("conv_times", "None if conv.bias is None else bias", "None"),
        (
            "output_channels:Convolution._scaled_weight",
            'self.node.op_type == "Conv"',
            "len(factor) == len(array)",
        ),
    ),
    *_mutants(
        "networks",
        "fuse-conv-batchnorm",
        ("conv_batchnorm", "conv.exact_bias() - mean", "conv.exact_bias()"),
        ("conv_batchnorm", "np.sqrt(variance +", "(variance +"),
    ),
    *_mutants(
        "networks",
        "fuse-pad-conv",
        ("_spatial_pads", "inputs[2] is not None and not", "False and not"),
        ("_spatial_pads", "any(around[:2][0]) or any(around[:2][1])", "False"),
        ("pad_inside", "p + q for p, q", "p for p, q"),
        ("_uncounted", "not counts and not counted", "False"),
    ),
    *_mutants(
        "networks",
        "compose-conv1d",
        ("_row_that_meets", "return int(before // dilation)", "return 0"),
        ("_attributes_without_dim", "i % 2 != index", "i % 2 == index"),
    ),
    *_mutants(
        "networks",
        "fuse-linear-bias",
        ("_bias", "sign * array", "array"),
        ("_bias", "(-beta if negated else beta)", "1.0"),
        ("gemm_plus", "(-1.0 if negated else 1.0)", "1.0"),
    ),
    *_mutants(
        "networks",
        "fuse-matmul-weight-bias",
        ("matmul_plus", "m.root.inputs[1] is product", "False"),
        ("matmul_plus", "alpha=-1.0", "alpha=1.0"),
    ),
    *_mutants("formulas", "fuse-leaky-relu", ("larger", "alpha > 1 or alpha == 0", "alpha == 0")),
    *_mutants("formulas", "fuse-prelu", ("_prelu", "b.constant(-array) if negated else a", "a")),
    *_mutants(
        "formulas",
        "prelu-to-lrelu",
        ("float32_attribute:as_float32", "not bool(np.all(array == first))", "False"),
    ),
    *_mutants(
        "formulas",
        "fuse-softmax",
        ("_fused", "axis=axis", "axis=-1"),
    ),
    *_mutants(
        "formulas",
        "fuse-layernorm-or-instancenorm",
        ("moments:MomentReader.square", "not self.is_number(node.inputs[1], 2.0)", "False"),
        ("moments:MomentReader.centred", "found[0] is not node.inputs[0]", "False"),
        ("moments:MomentReader._root_of", "axes, epsilon, is_centred", "axes, 1e-5, is_centred"),
        ("moments:MomentReader.is_centred", "== (deviation.x, deviation.axes)", "is not None"),
    ),
    Mutant(
        "formulas",
        "fuse-gelu-exact",
        "ir.match_state:MatchState.bind",
        "self.bindings[name] is value",
        "True",
    ),
    Mutant(
        "elementwise",
        "noop-elimination",
        "ir.constants:_is_filled",
        "all(is_close(item, number, ulp)",
        "any(is_close(item, number, ulp)",
    ),
    Mutant(
        "elementwise",
        "noop-elimination",
        "ir.rewrite:Rewriter._check",
        "not trust_shape and",
        "False and",
    ),
    *_mutants(
        "structure",
        "noop-elimination",
        ("_keeps_order", "list(perm.as_ints()) == sorted(perm.as_ints())", "True"),
        ("pad_nothing", "any(pads)", "sum(pads)"),
        (
            "whole_slice",
            "all(step == 1 or shape[axis] == 1 for axis, (_, _, step) in cuts.items())",
            "True",
        ),
    ),
    *_mutants(
        "elementwise",
        "merge-consecutive-relus",
        ("clip_to_both", "max(first[0], second[0])", "second[0]"),
        ("clip_to_both", "and low <= high", ""),
    ),
    *_mutants(
        "structure",
        "merge-consecutive-reshapes",
        ("constant_shape", "same_dim(source[index], dim)", "True"),
    ),
    *_mutants(
        "structure",
        "remove-symbolic-reshape",
        ("reshape_operand", "same_dim(source[index], element)", "True"),
        ("symbolic_expand", "same_dim(source[index - raised], element)", "True"),
    ),
    *_mutants(
        "structure",
        "merge-consecutive-paddings",
        ("pad_of_pad", "not _same_value(m, first, second)", "False"),
        ("pad_of_pad", "_axes(inner, rank) & _axes(outer, rank)", "False"),
        ("pad_of_pad", "min((*inner, *outer), default=0) < 0", "False"),
    ),
    *_mutants(
        "elementwise",
        "select-optimization",
        ("where_of_constant_condition", "if not mask.any() else Miss", "if mask.size else Miss"),
    ),
    *_mutants(
        "elementwise",
        "cast-optimization",
        ("cast_of_cast", "not holds(middle, x.dtype)", "False"),
        ("holds", "info.nmant + 1 >= bits", "True"),
    ),
    *_mutants(
        "elementwise",
        "remove-redundant-ops",
        ("_Search.key", "tuple(attributes),", "(),"),
        ("_Search.key", "node.op_type in COMMUTATIVE and", "True and"),
    ),
    *_mutants(
        "structure",
        "merge-consecutive-transposes",
        (
            "transpose_of_transpose",
            "first[axis] for axis in second",
            "second[axis] for axis in first",
        ),
    ),
    *_mutants(
        "structure",
        "reduce-transposes",
        (
            "untransposed_operand:untransposed",
            "full.transpose(inverse(perm))",
            "full.transpose(perm)",
        ),
        ("transposed_axes:_with_axes", "len(operands) < 2 or operands[1] is None", "False"),
        ("commuted:normalized", "axis % rank for axis in axes", "0 for axis in axes"),
    ),
    Mutant(
        "elementwise",
        "const-deduplication",
        "passes.cleanup.const_deduplication:_sample",
        "tensor.tobytes()",
        "b''",
    ),
    Mutant(
        "structure",
        "select-optimization",
        "ir.rewrite:Rewriter.remove_dead",
        "not scope.is_unread(node)",
        "not any(scope.is_dead(value) for value in node.outputs)",
    ),
    Mutant(
        "control",
        "loop-invariant-elimination",
        "passes.cleanup.loop_invariant_elimination:_Carrier.initial",
        "returned is not _through_identity(initial)",
        "False",
    ),
]
