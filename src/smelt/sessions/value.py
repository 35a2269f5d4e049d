"""Values of inputs and outputs: tensors in this process's memory, sequences, maps, or nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.errors import UsageError
from smelt.sessions.process import get_device


class OrtValue:
    """A value of an input or output; a tensor shares the memory of its NumPy array."""

    def __init__(self, value: Any, element_type: int | None = None) -> None:
        """Hold ``value``; ``element_type`` is its number in ONNX, by default that of its dtype."""
        self._value = value
        self._element_type = element_type

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Return a tensor that shares the memory of ``numpy_obj``."""
        refuse_device(device_type)
        return cls(np.asarray(numpy_obj))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: np.ndarray, onnx_element_type: int
    ) -> OrtValue:
        """Return a tensor whose elements are the bytes of ``data``, read as another type."""
        return cls(data.view(dtype_of(onnx_element_type)), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
    ) -> OrtValue:
        """Return a tensor of zeros; ``element_type`` is a NumPy type or a number in ONNX."""
        refuse_device(device_type)
        number = element_type if isinstance(element_type, int) else None
        return cls(np.zeros(tuple(shape), dtype_of(element_type)), number)

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """Return a tensor that shares the memory of ``data``, a tensor of any library on the CPU.

        ``is_bool_tensor`` reads bytes as bools.
        """
        array = np.from_dlpack(data)
        return cls(array.view(np.bool_) if is_bool_tensor else array)

    def __dlpack__(self, **options: Any) -> Any:
        """Return the tensor as a DLPack capsule, without a copy."""
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the tensor in the numbers of DLPack."""
        device: tuple[int, int] = self.numpy().__dlpack_device__()
        return device

    def numpy(self) -> Any:
        """Return the array of a tensor, or the list or dict of another value, without a copy."""
        return self._value

    def update_inplace(self, array: np.ndarray) -> None:
        """Copy ``array``, of the same shape and type, into the memory of this tensor."""
        copy_into(self._value, array)

    def shape(self) -> list[int]:
        """Return the sizes of the tensor."""
        return list(self._value.shape)

    def element_type(self) -> int:
        """Return the number of the element type in ONNX."""
        if self._element_type is not None:
            return self._element_type
        import onnx_ir as ir

        kind = self._value.dtype.kind
        return int(ir.DataType.STRING if kind in "OUST" else ir.DataType.from_numpy(self._dtype))

    def data_type(self) -> str:
        """Return the type: ``tensor(float)``, or ``seq`` or ``map`` for other values."""
        if not self.is_tensor():
            return "map" if isinstance(self._value, dict) else "seq"
        import onnx_ir as ir

        return f"tensor({ir.DataType(self.element_type()).name.lower()})"

    def tensor_size_in_bytes(self) -> int:
        """Return the bytes of the elements of the tensor."""
        return int(self._value.nbytes)

    def data_ptr(self) -> int:
        """Return the address of the first element of the tensor."""
        return int(self._value.ctypes.data)

    def device_name(self) -> str:
        """Return ``cpu``."""
        return get_device().lower()

    def has_value(self) -> bool:
        """True unless this is an optional value that is absent."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """True for a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """True for a list of tensors."""
        return isinstance(self._value, list) and all(
            isinstance(element, np.ndarray) for element in self._value
        )

    def is_sparse_tensor(self) -> bool:
        """Return False: sparse tensors are not supported."""
        return False

    @property
    def _dtype(self) -> np.dtype:
        """The NumPy type of the elements."""
        dtype: np.dtype = self._value.dtype
        return dtype


def tensor_at(address: int, shape: Sequence[int], element_type: Any) -> np.ndarray:
    """Return the tensor at ``address``, whose owner must keep it while the tensor is in use."""
    dtype = dtype_of(element_type)
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address)
    elements: np.ndarray = np.frombuffer(memoryview(memory), np.uint8)
    return elements.view(dtype).reshape(tuple(shape))


def copy_into(memory: np.ndarray, array: np.ndarray) -> None:
    """Copy ``array`` into ``memory``; raises UsageError E632 for another shape or type."""
    if memory.shape != array.shape or memory.dtype != array.dtype:
        raise UsageError(
            "E632",
            f"an array of {array.dtype}{list(array.shape)} does not fit the memory given for it",
            why=f"the memory is for {memory.dtype}{list(memory.shape)}",
            fix="give memory of the type and the shape of the value",
        )
    np.copyto(memory, array)


def dtype_of(element_type: Any) -> np.dtype:
    """Return the NumPy type of ``element_type``, which may be a number in ONNX."""
    if not isinstance(element_type, int):
        dtype: np.dtype = np.dtype(element_type)
        return dtype
    import onnx_ir as ir

    return np.dtype(ir.DataType(element_type).numpy())


def refuse_device(device: str) -> None:
    """Raise UsageError E663 unless ``device`` is the CPU."""
    if device.lower() != "cpu":
        raise UsageError(
            "E663",
            f"there is no device {device!r}",
            why="sessions of smelt run on the CPU",
            fix="give device_type='cpu'",
        )
