"""Bind inputs and outputs of a session to memory before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt.errors import UsageError
from smelt.sessions.value import OrtValue, copy_into, refuse_device, tensor_at

if TYPE_CHECKING:
    from smelt.sessions.session import InferenceSession


class IOBinding:
    """The memory of the inputs and outputs of a session, for ``run_with_iobinding``.

    Inputs are read where they are. A result for which memory is given is copied to it; other
    results are new arrays.
    """

    def __init__(self, session: InferenceSession) -> None:
        """Bind nothing yet."""
        self._session = session
        self.inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Read input ``name`` from an array, or from a tensor of a library with DLPack."""
        self._check_name(name, self._session.input_names)
        is_foreign = not isinstance(arr_on_cpu, np.ndarray) and hasattr(arr_on_cpu, "__dlpack__")
        self.inputs[name] = np.from_dlpack(arr_on_cpu) if is_foreign else arr_on_cpu

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read input ``name`` from the memory at an address, which must stay valid."""
        refuse_device(device_type)
        self._check_name(name, self._session.input_names)
        self.inputs[name] = tensor_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read input ``name`` from a value."""
        self._check_name(name, self._session.input_names)
        self.inputs[name] = ortvalue.numpy()

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Return output ``name``, in new memory or in the memory at an address.

        Raises UsageError E632 for an address without type and shape.
        """
        refuse_device(device_type)
        self._check_name(name, self._session.output_names)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            raise UsageError(
                "E632",
                f"output {name!r} has an address without a type or a shape",
                why="the size of the memory must be known",
                fix="give element_type and shape beside buffer_ptr",
            )
        self._outputs[name] = OrtValue(tensor_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Copy output ``name`` into the tensor of a value."""
        self._check_name(name, self._session.output_names)
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Do nothing: the CPU has no copies in flight."""

    def synchronize_outputs(self) -> None:
        """Do nothing: the CPU has no copies in flight."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the bound outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return the bound outputs of the last run as arrays that no later run changes."""
        values = [result.numpy() for result in self._results]
        return [np.array(each) if isinstance(each, np.ndarray) else each for each in values]

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget all outputs and results."""
        self._outputs.clear()
        self._results.clear()

    def store(self, results: Mapping[str, Any]) -> None:
        """Keep the bound outputs of a run, whose ``results`` are given by name.

        A result is copied into the memory that was bound for it, if any.
        """
        kept = []
        for name, memory in self._outputs.items():
            if memory is not None:
                copy_into(memory.numpy(), results[name])
            kept.append(OrtValue(results[name]) if memory is None else memory)
        self._results = kept

    def _check_name(self, name: str, names: Sequence[str]) -> None:
        """Raise UsageError E632 unless ``name`` is one of ``names``."""
        if name not in names:
            raise UsageError(
                "E632",
                f"the model has no input or output {name!r} to bind",
                why=f"it has {', '.join(map(repr, names)) or 'none'}",
                fix="bind the names of get_inputs() and get_outputs()",
            )
