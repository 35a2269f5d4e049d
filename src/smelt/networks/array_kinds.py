"""Arrays of NumPy, JAX, PyTorch and other packages with DLPack: as NumPy arrays, and back.

Memory is shared, not copied, where both sides allow it: JAX copies a result that is not aligned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from smelt.errors import UsageError

Back: TypeAlias = Callable[[np.ndarray], Any]
"""Returns a NumPy array as an array of the kind that came in."""


def numpy_arrays(operands: Sequence[Any]) -> tuple[list[np.ndarray], Back]:
    """Return ``operands`` as NumPy arrays, and a function that converts a result to their kind.

    The kind is that of the first operand that is no NumPy array, number or list. Raises UsageError
    E671 for an array that is not in the memory of this machine, or that NumPy cannot read.
    """
    arrays: list[np.ndarray] = []
    back: Back | None = None
    for number, operand in enumerate(operands):
        package = package_of(operand)
        if type(operand) is np.ndarray:
            arrays.append(operand)
            continue
        try:
            array, own_back = _read(operand, package)
        except UsageError:
            raise
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise _unreadable(number, operand, str(error)) from error
        if array.dtype.kind in "OUSMm":
            raise _unreadable(number, operand, f"its elements are {array.dtype}")
        arrays.append(array)
        back = back or own_back
    return arrays, back or _as_numpy


def package_of(operand: Any) -> str:
    """Return the name of the package that defines the class of ``operand``."""
    return type(operand).__module__.partition(".")[0]


def write_to(out: Any, array: np.ndarray) -> None:
    """Copy ``array`` into ``out``, an array or a tensor.

    A tensor is written by PyTorch, which counts its changes; autograd and caches compare the count.
    """
    if package_of(out) == "torch":
        from smelt.networks.tensors import tensor_of

        out.copy_(tensor_of(array))
        return
    (target,), _ = numpy_arrays([out])
    np.copyto(target, array, casting="same_kind")


def element_type_of(dtype: Any) -> np.dtype:
    """Return the NumPy type of ``dtype``; raises TypeError if it names none."""
    if package_of(dtype) == "torch":
        from smelt.networks.tensors import numpy_type

        return numpy_type(dtype)
    found: np.dtype = np.dtype(dtype)
    return found


def is_traced(operands: Sequence[Any]) -> bool:
    """True if JAX traces one of ``operands``."""
    jax = sys.modules.get("jax")
    return jax is not None and any(isinstance(each, jax.core.Tracer) for each in operands)


def needs_gradient(operands: Sequence[Any]) -> bool:
    """True if PyTorch records operations on one of ``operands``."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any(isinstance(each, torch.Tensor) and each.requires_grad for each in operands)


def _read(operand: Any, package: str) -> tuple[np.ndarray, Back | None]:
    """Return ``operand`` as a NumPy array, and the function that converts back; None for NumPy."""
    if package == "torch":
        return _read_torch(operand)
    if package in ("jax", "jaxlib"):
        return np.asarray(operand), _as_jax
    if hasattr(operand, "__dlpack__") and not isinstance(operand, np.ndarray | np.generic):
        array = np.from_dlpack(operand)
        return array, _by_dlpack(operand)
    return np.asarray(operand), None


def _as_numpy(array: np.ndarray) -> Any:
    """Return ``array``; a number for a result without dims, as NumPy does."""
    return array[()]


def _as_jax(array: np.ndarray) -> Any:
    """Return ``array`` as a JAX array."""
    import jax

    return jax.numpy.asarray(array)


def _read_torch(tensor: Any) -> tuple[np.ndarray, Back]:
    """Return a tensor as an array that shares its memory."""
    import torch

    from smelt.networks.tensors import array_of, tensor_of

    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise UsageError(
            "E671",
            f"a tensor is on {tensor.device} with layout {tensor.layout}",
            why="contractions run on dense tensors in the memory of this machine",
            fix="pass tensor.cpu(), or tensor.to_dense()",
        )
    return array_of(tensor), tensor_of


def _by_dlpack(operand: Any) -> Back | None:
    """Return the function that turns NumPy arrays into arrays of the package of ``operand``.

    None if the package has no array namespace, as the array API standard calls it.
    """
    namespace = getattr(operand, "__array_namespace__", None)
    if namespace is None:
        return None
    from_dlpack: Back = namespace().from_dlpack
    return from_dlpack


def _unreadable(number: int, operand: Any, why: str) -> UsageError:
    """Return E671: the operand is no array of numbers."""
    return UsageError(
        "E671",
        f"operand {number} of type {type(operand).__name__} cannot be read as an array",
        why=why.partition("\n")[0],
        fix="pass an array of NumPy, JAX or PyTorch with numbers in the memory of this machine",
    )
