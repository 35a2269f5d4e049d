"""A contraction that PyTorch differentiates: gradients are contractions again."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from smelt.networks.array_kinds import numpy_arrays
from smelt.networks.derivatives import backward, factor_arrays, optimize_for_derivative
from smelt.networks.equations import equation_of
from smelt.networks.tensors import tensor_of, torch_type
from smelt.operators.contraction import parse, sizes_of


def recorded(text: str, operands: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    """Return the contraction of tensors, recorded for ``backward``.

    Element types are promoted as PyTorch does. Gradients of gradients are recorded, too.
    """
    tensors = [torch.as_tensor(each) for each in operands]
    common = tensors[0].dtype if dtype is None else torch_type(dtype)
    for tensor in tensors[1:] if dtype is None else ():
        common = torch.promote_types(common, tensor.dtype)
    equation, _ = equation_of(text, [tensor.shape for tensor in tensors])
    return Contract.apply(str(equation), options, *(tensor.to(common) for tensor in tensors))


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
        tensors = context.saved_tensors
        parsed = parse(context.equation, [tensor.ndim for tensor in tensors])
        sizes: dict[str, Any] = dict(sizes_of(parsed.terms, [tensor.shape for tensor in tensors]))
        options = {
            **context.options,
            "optimize": optimize_for_derivative(context.options.get("optimize", "auto")),
        }
        found: list[Any] = [None, None]
        for number, tensor in enumerate(tensors):
            if not context.needs_input_grad[number + 2]:
                found.append(None)
                continue
            equation, factors = backward(parsed, sizes, number)
            others = [each.conj() for i, each in enumerate(tensors) if i != number]
            extra = [
                torch.from_numpy(each).to(tensor.dtype) for each in factor_arrays(factors, "f4")
            ]
            found.append(Contract.apply(str(equation), options, *others, gradients[0], *extra))
        return tuple(found)
