"""Forms of norms and activations: the operators by which `ort` may replace them, where faster."""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import Op, op, var
from smelt.ir.rule import Build, Match, Miss, Replacement
from smelt.ir.same_shape import same_dim, same_shape
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.passes.norms.fuse_elementwise_to_batchnorm import scale_and_offset
from smelt.targets.ort import choices
from smelt.targets.ort.form import Form, Sizes, SizesOf, number, rows_of


def _row_sizes(name: str) -> SizesOf:
    """Return a function of a match to the rows and width of the value bound to ``name``."""

    def sizes(m: Match) -> Sizes | Miss:
        """Return number and width of the rows of the operand ``name``, or a Miss."""
        value = m[name]
        if value.shape is None or not len(value.shape):
            return Miss(f"the rank of {name} is unknown or 0")
        return {"rows": rows_of(value) or None, "width": number(value.shape[-1])}

    return sizes


def _layer_norm(form: str) -> Build:
    """Return a builder that writes the sum before a LayerNormalization as ``form``, Add or Sum.

    ONNX Runtime fuses an Add of equal shapes into the norm, but not a Sum, so other sums stay.
    """

    def build(m: Match, b: Builder) -> Replacement:
        """Build the sum by the operator ``form``, and the LayerNormalization that reads it."""
        if not same_shape(m["x"].shape, m["s"].shape):
            return Miss("the operands of the sum are not proved to have the same shape")
        total = b.op(form, m["x"], m["s"])
        return b.like(m.root, total, *m.root.inputs[1:])

    return build


def _biased_builder(form: str) -> Build:
    """Return a builder that replaces an activation of ``x + bias`` (of rank 1) by ``form``."""

    def build(m: Match, b: Builder) -> Replacement:
        """Build the operator, or return a Miss if there is no bias of one dim."""
        x, bias = sorted((m["x"], m["b"]), key=lambda value: -len(value.shape or ()))
        if x.shape is None or bias.shape is None:
            return Miss("the rank of an operand of the sum is not known")
        if len(bias.shape) != 1:
            return Miss("the rank of the bias is not 1")
        if not same_dim(bias.shape[0], x.shape[-1]):
            return Miss("the bias is not proved to have one number for each column")
        return b.op(form, x, bias, domain=DOMAIN)

    return build


def _biased_sizes(m: Match) -> Sizes | Miss | None:
    """Return rows and width of the operand of higher rank."""
    ranks = {name: len(m[name].shape or ()) for name in ("x", "b")}
    return _row_sizes(max(ranks, key=lambda name: ranks[name]))(m)


def _silu(m: Match, b: Builder) -> Replacement:
    """Build a QuickGelu with alpha 1, which is SiLU."""
    return b.op("QuickGelu", m["x"], domain=DOMAIN, alpha=1.0)


def _channel_sizes(m: Match) -> Sizes | Miss:
    """Return channels and pixels of an x that is scaled and shifted channel by channel."""
    if any(math.prod(m[name].shape or ()) == 1 for name in ("scale", "offset")):
        return Miss("the factor or the term has one element, not one for each channel")
    dims = m["x"].shape
    if dims is None or len(dims) < 3:
        return Miss("x is not known to have rank 3 or more")
    pixels = [number(dim) for dim in dims[2:]]
    known_pixels = [size for size in pixels if size]
    return {
        "channels": number(dims[1]),
        "pixels": math.prod(known_pixels) if len(known_pixels) == len(pixels) else None,
    }


def _normalization_pattern(total: str) -> Op:
    """Return the pattern of a LayerNormalization of a ``total`` node."""
    return op("LayerNormalization", op(total, var("x"), var("s")), rest=True)


def _by_tanh(node: ir.Node) -> bool:
    """True for a Gelu by tanh."""
    return node.attributes.get_string("approximate", "none") == "tanh"


def _exact(node: ir.Node) -> bool:
    """True for a Gelu by erf."""
    return not _by_tanh(node)


_rows = _row_sizes("x")
_sum = op("Add", var("x"), var("b"))
_gelu, _tanh_gelu = (op("Gelu", _sum, where=where) for where in (_exact, _by_tanh))
_gated = op("Mul", var("x"), op("Sigmoid", var("x")), commutative=True)
_affine, _normalized = scale_and_offset.pattern, scale_and_offset.build

FORMS = (
    Form(
        choices.RESIDUAL_LAYER_NORM, "Sum", _normalization_pattern("Add"), _rows, _layer_norm("Sum")
    ),
    Form(choices.SUM_LAYER_NORM, "Add", _normalization_pattern("Sum"), _rows, _layer_norm("Add")),
    Form(choices.BIAS_GELU, "BiasGelu", _gelu, _biased_sizes, _biased_builder("BiasGelu")),
    Form(
        choices.BIAS_GELU_BY_TANH,
        "FastGelu",
        _tanh_gelu,
        _biased_sizes,
        _biased_builder("FastGelu"),
    ),
    Form(choices.SILU, "QuickGelu", _gated, _rows, _silu),
    Form(choices.CHANNEL_AFFINE, "BatchNormalization", _affine, _channel_sizes, _normalized),
)
