"""Read matrix products, convolutions, Fourier transforms, Cholesky and triangular solves."""

from __future__ import annotations

from typing import Any

from jax import lax
from jaxlib.mlir.dialects import stablehlo

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.registry import reads


@reads("dot_general")
def _dot_general(cx: Any, op: Operation, a: Any, b: Any) -> Any:
    """Return a batched matrix product."""
    numbers = stablehlo.DotDimensionNumbers(op.view.attributes["dot_dimension_numbers"])
    contracting = (
        tuple(numbers.lhs_contracting_dimensions),
        tuple(numbers.rhs_contracting_dimensions),
    )
    batch = (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions))
    return lax.dot_general(a, b, (contracting, batch), preferred_element_type=op.dtype)


@reads("dot")
def _dot(cx: Any, op: Operation, a: Any, b: Any) -> Any:
    """Return the product of matrices or vectors."""
    return lax.dot(a, b, preferred_element_type=op.dtype)


@reads("convolution", "dynamic_conv")
def _convolution(cx: Any, op: Operation, x: Any, kernel: Any, *padding: Any) -> Any:
    """Return a convolution; ``padding`` has the operand of a symbolic padding, if there is one."""
    if any(op.integers("window_reversal")):
        raise op.unsupported("it reverses its windows, which jax.lax.conv_general_dilated cannot")
    ones = (1,) * (x.ndim - 2)
    pads: Any = op.table("padding") or [(0, 0)] * (x.ndim - 2)
    if padding:
        flat = cx.dims(op, padding[0])
        pads = list(zip(flat[::2], flat[1::2], strict=True))
    # JAX's public function rejects symbolic padding, although its own SAME computes it.
    return jax_names.conv_general_dilated(
        x,
        kernel,
        window_strides=tuple(op.integers("window_strides", ones)),
        padding=tuple(map(tuple, pads)),
        lhs_dilation=tuple(op.integers("lhs_dilation", ones)),
        rhs_dilation=tuple(op.integers("rhs_dilation", ones)),
        dimension_numbers=_dimension_numbers(op),
        feature_group_count=op.integer("feature_group_count", 1),
        batch_group_count=op.integer("batch_group_count", 1),
        precision=None,
        preferred_element_type=op.dtype,
        out_sharding=None,
    )


def _dimension_numbers(op: Operation) -> lax.ConvDimensionNumbers:
    """Return the roles of the dims of image, kernel and result: batch, features, spatial dims."""
    mlir = stablehlo.ConvDimensionNumbers(op.view.attributes["dimension_numbers"])
    return lax.ConvDimensionNumbers(
        (
            mlir.input_batch_dimension,
            mlir.input_feature_dimension,
            *mlir.input_spatial_dimensions,
        ),
        (
            mlir.kernel_output_feature_dimension,
            mlir.kernel_input_feature_dimension,
            *mlir.kernel_spatial_dimensions,
        ),
        (
            mlir.output_batch_dimension,
            mlir.output_feature_dimension,
            *mlir.output_spatial_dimensions,
        ),
    )


@reads("fft")
def _fft(cx: Any, op: Operation, x: Any) -> Any:
    """Return the Fourier transform of the kind and length that the attributes state."""
    return lax.fft(x, op.word("fft_type"), op.integers("fft_length"))


@reads("cholesky")
def _cholesky(cx: Any, op: Operation, x: Any) -> Any:
    """Return the lower Cholesky factor."""
    if not op.integer("lower"):
        raise op.unsupported("it asks for the upper factor, which JAX never does")
    return lax.linalg.cholesky(x, symmetrize_input=False)


@reads("triangular_solve")
def _triangular_solve(cx: Any, op: Operation, a: Any, b: Any) -> Any:
    """Return the solution of a triangular system."""
    transpose = op.word("transpose_a", "NO_TRANSPOSE")
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=bool(op.integer("left_side")),
        lower=bool(op.integer("lower")),
        transpose_a=transpose != "NO_TRANSPOSE",
        conjugate_a=transpose == "ADJOINT",
        unit_diagonal=bool(op.integer("unit_diagonal")),
    )


@reads("rng_bit_generator")
def _random_bits(cx: Any, op: Operation, state: Any) -> Any:
    """Raise Unsupported E101: each device may compute other random bits."""
    why = "its numbers depend on the device that runs it"
    raise op.unsupported(why, "E101", "export with keys of the default generator, threefry2x32")
