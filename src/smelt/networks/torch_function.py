"""A contraction that PyTorch differentiates: gradients are contractions again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from smelt.errors import UsageError
from smelt.networks.array_kinds import numpy_arrays
from smelt.networks.derivatives import backward, factor_arrays, optimize_for_derivative
from smelt.networks.equations import equation_of
from smelt.networks.expansion import Expansion
from smelt.networks.tensors import tensor_of, torch_type
from smelt.operators.contraction import parse, sizes_of

if TYPE_CHECKING:
    from smelt.networks.differentiable import Differentiable


def recorded(text: str, operands: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    """Return the contraction of tensors, recorded for ``backward``.

    Element types are promoted as PyTorch does. Gradients of gradients are recorded, too.
    """
    tensors = _read(operands)
    common = tensors[0].dtype if dtype is None else torch_type(dtype)
    for tensor in tensors[1:] if dtype is None else ():
        common = torch.promote_types(common, tensor.dtype)
    equation, _ = equation_of(text, [tensor.shape for tensor in tensors])
    return Contract.apply(str(equation), options, *(tensor.to(common) for tensor in tensors))


def recorded_call(artifact: Differentiable, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of ``artifact`` as tensors, recorded for ``backward``.

    Raises UsageError E671 for tensors of other shapes or element types, and over another semiring.
    """
    from smelt.networks.contract import unrecorded

    expansion = artifact.expansion
    if expansion.semiring != "sum_product":
        raise unrecorded()
    tensors = _read(inputs)
    arrays, _ = numpy_arrays([tensor.detach() for tensor in tensors])
    expansion.check([array.shape for array in arrays], [array.dtype for array in arrays])
    found: tuple[Any, ...] = CallArtifact.apply(artifact, *tensors)
    return found


def _read(operands: Sequence[Any]) -> list[Any]:
    """Return ``operands`` as tensors; raises UsageError E671."""
    try:
        return [torch.as_tensor(each) for each in operands]
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(
            "E671",
            "an operand cannot be read as a tensor",
            why=str(error).partition("\n")[0],
            fix="pass tensors, or arrays of numbers of NumPy",
        ) from error


class CallArtifact(torch.autograd.Function):  # type: ignore[misc]
    """Calls an artifact whose results are sums of contractions."""

    @staticmethod
    def forward(context: Any, artifact: Differentiable, *tensors: Any) -> tuple[Any, ...]:
        """Return the results."""
        context.expansion = artifact.expansion
        context.save_for_backward(*tensors)
        arrays, _ = numpy_arrays([tensor.detach() for tensor in tensors])
        results = artifact(*(np.ascontiguousarray(array) for array in arrays))
        return tuple(tensor_of(np.asarray(result)) for result in results)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> tuple[Any, ...]:
        """Return the gradient of each tensor: the sum of those of all contractions."""
        expansion: Expansion = context.expansion
        inputs = expansion.inputs
        needed = {n for n, need in zip(inputs, context.needs_input_grad[1:], strict=True) if need}
        totals: dict[int, Any] = {}
        values = expansion.whole(context.saved_tensors, tensor_of)
        for gradient, summands in zip(gradients, expansion.results, strict=True):
            for each in summands:
                own = [values[number] for number in each.operands]
                factor = 1 if each.factor == 1 else np.conj(each.factor).item()
                for place, number in enumerate(each.operands):
                    if number in needed:
                        options = dict(expansion.options)
                        term = gradient_of(each.equation, options, own, place, gradient) * factor
                        totals[number] = totals[number] + term if number in totals else term
        return (None, *(totals.get(number) for number in inputs))


def gradient_of(
    equation: str, options: dict[str, Any], tensors: Sequence[Any], number: int, gradient: Any
) -> Any:
    """Return the gradient of operand ``number`` of a contraction, recorded as well."""
    parsed = parse(equation, [tensor.ndim for tensor in tensors])
    sizes: dict[str, Any] = dict(sizes_of(parsed.terms, [tensor.shape for tensor in tensors]))
    options = {**options, "optimize": optimize_for_derivative(options.get("optimize", "auto"))}
    derivative, factors = backward(parsed, sizes, number)
    others = [each.conj() for i, each in enumerate(tensors) if i != number]
    dtype = tensors[number].dtype
    extra = [torch.from_numpy(each).to(dtype) for each in factor_arrays(factors, "f4")]
    return Contract.apply(str(derivative), options, *others, gradient, *extra)


class Contract(torch.autograd.Function):  # type: ignore[misc]
    """Contracts tensors of one element type; the equation has no ellipses."""

    @staticmethod
    def forward(context: Any, equation: str, options: dict[str, Any], *tensors: Any) -> Any:
        """Return the contraction."""
        from smelt.networks.contract import einsum

        context.equation, context.options = equation, options
        context.save_for_backward(*tensors)
        arrays, _ = numpy_arrays(tensors)
        return tensor_of(np.asarray(einsum(equation, *arrays, **options)))

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        """Return one gradient per argument of ``forward``; None where none is needed."""
        tensors, found = context.saved_tensors, list[Any]([None, None])
        for number in range(len(tensors)):
            needed = context.needs_input_grad[number + 2]
            arguments = (context.equation, context.options, tensors, number, gradients[0])
            found.append(gradient_of(*arguments) if needed else None)
        return tuple(found)
