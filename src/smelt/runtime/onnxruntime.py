"""Run a model in ONNX Runtime: by default on one thread and without graph optimizations."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, ResourceLimit, SmeltError, Unsupported, not_installed
from smelt.ir import scope
from smelt.runtime.feed import feed
from smelt.runtime.interface import Interface, Value, interface_of
from smelt.runtime.reference import Reference
from smelt.runtime.serialize import serialize
from smelt.runtime.session import STOP_SPINNING
from smelt.runtime.values import from_ort, is_native, to_ort

if TYPE_CHECKING:
    import onnxruntime as ort

TIME_LIMIT = 120.0
"""Seconds after which a run is stopped; an infinite Loop is a valid model."""

NO_KERNEL = (
    "NOT_IMPLEMENTED",
    "is not a registered function/op",
    "No Op registered for",
    "is under development",
    "Unsupported model IR version",
    "is invalid.",  # "Type 'tensor(bfloat16)' of input parameter ... is invalid."
)
"""Parts of the messages with which ONNX Runtime reports a missing kernel for a valid model."""


NO_MEMORY = ("Failed to allocate memory", "bad_alloc", "bad allocation")


class OnnxRuntime:
    """A session of ONNX Runtime, as a ``runner.Runner``.

    ``time_limit`` is the most seconds of one run.
    """

    name = "onnxruntime"

    def __init__(
        self,
        model: ir.Model,
        *,
        optimized: bool = False,
        time_limit: float = TIME_LIMIT,
        consume: bool = False,
        threads: int = 1,
        in_file_order: bool = False,
    ) -> None:
        """Open the session; raises Unsupported E220 and the errors of ``load_error``.

        With ``in_file_order``, nodes run in the order of the graph, which bounds memory where many
        results are reduced at once.
        """
        self.interface: Interface = interface_of(model)
        self.time_limit = time_limit
        self._for_empty_inputs = model.clone() if _has_einsum(model) else None
        ort = _import()
        serialized = serialize(model, share_weights=True, consume=consume, fill_gaps=True)
        self._weights = serialized.weights  # keep alive: the session reads them in place
        data = serialized.proto.SerializeToString()
        del serialized
        self._session = _open(ort, data, self._weights, optimized, threads, in_file_order)
        ports = (*self.interface.inputs, *self.interface.outputs)
        self._native = all(is_native(port.dtype) for port in ports)
        if not self._native and any(port.kind != "tensor" for port in ports):
            raise Unsupported(
                "E220",
                "ONNX Runtime accepts no sequences or optionals of element types beyond NumPy",
                why="their items are passed as NumPy arrays, which have no such elements",
                fix="cast the elements to float32 where they enter and leave the model",
            )

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run once. Raises InvalidModel E321 if the run fails, ResourceLimit E511 if it is slow."""
        ort = _import()
        values_by_name = feed(self.interface, inputs)
        if self._for_empty_inputs is not None and any(
            _is_empty(value) for value in values_by_name.values()
        ):
            return Reference(self._for_empty_inputs)(*inputs)
        options = ort.RunOptions()
        watchdog = threading.Timer(self.time_limit, _stop, (options,))
        watchdog.daemon = True
        if math.isfinite(self.time_limit):
            watchdog.start()
        try:
            return self._run(values_by_name, options)
        except (SmeltError, MemoryError):
            raise
        except Exception as error:
            raise run_error(str(error), stopped=bool(options.terminate)) from error
        finally:
            watchdog.cancel()

    def _run(self, values_by_name: dict[str, Value], options: ort.RunOptions) -> tuple[Value, ...]:
        """Run the session; element types that NumPy lacks are passed as OrtValues."""
        names = [port.name for port in self.interface.outputs]
        if self._native:
            return tuple(self._session.run(names, values_by_name, options))
        values = {}
        for port in self.interface.inputs:
            array = values_by_name.get(port.name)
            if isinstance(array, np.ndarray) and port.dtype is not None:
                values[port.name] = to_ort(array, port.dtype)
        results = self._session.run_with_ort_values(names, values, options)
        return tuple(from_ort(result) for result in results)


def _has_einsum(model: ir.Model) -> bool:
    """True if ``model`` has an Einsum, in which ONNX Runtime might crash on empty inputs.

    Calls with empty inputs then run in the reference evaluator. Where sizes are known,
    ``operators/onnxruntime/empty_einsum.py`` has replaced such an Einsum before.
    """
    return any(node.op_type == "Einsum" and not node.domain for node in scope.nodes(model))


def _is_empty(value: Value) -> bool:
    """True for an array without elements."""
    return isinstance(value, np.ndarray) and value.size == 0


def version() -> str:
    """Return the version of the installed ONNX Runtime; raises UsageError E631 if there is none."""
    return str(_import().__version__)


def _stop(options: ort.RunOptions) -> None:
    """Ask ONNX Runtime to stop the run."""
    options.terminate = True


def _import() -> ModuleType:
    """Return the module onnxruntime; UsageError E631 if it is not installed."""
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        raise not_installed("onnxruntime", "ort", "running a model") from error


def _open(
    ort: ModuleType,
    data: bytes,
    weights: Mapping[str, np.ndarray],
    optimized: bool,
    threads: int,
    in_file_order: bool = False,
) -> ort.InferenceSession:
    """Open a session on the serialized model with its weights; raises as ``load_error`` says."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # failures raise exceptions; the log adds only noise
    options.add_session_config_entry(STOP_SPINNING, "1")  # spinning slows other timed sessions
    levels = ort.GraphOptimizationLevel
    level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    if not optimized:
        # Prepacked weights use other kernels than computed operands, and these round differently.
        options.add_session_config_entry("session.disable_prepacking", "1")
    if in_file_order:
        options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    if weights:
        values = [ort.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    try:
        return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except MemoryError:
        raise
    except Exception as error:
        raise load_error(str(error)) from error


def load_error(message: str) -> SmeltError:
    """Return the error for ONNX Runtime's ``message`` when it opens a model."""
    if any(words in message for words in NO_MEMORY):
        return ResourceLimit(
            "E510",
            "there is not enough memory to open the model",
            why=message,
            fix="free memory, or run the model on a larger machine",
        )
    if any(part in message for part in NO_KERNEL):
        return _no_kernel(message)
    return InvalidModel(
        "E320",
        "ONNX Runtime refuses the model",
        why=message,
        fix="`smelt inspect` shows the operators; another version of ONNX Runtime may have the "
        "kernel",
    )


def _no_kernel(message: str) -> Unsupported:
    """Return the error for an operator or element type without a kernel in ONNX Runtime."""
    return Unsupported(
        "E220",
        "ONNX Runtime cannot run an operator of the model",
        why=message,
        fix="optimize the model, which replaces some operators, or run it on the target 'host'",
    )


def run_error(message: str, *, stopped: bool = False) -> SmeltError:
    """Return the error for ONNX Runtime's ``message`` in a run; ``stopped`` means the
    time limit.
    """
    if stopped:
        return ResourceLimit(
            "E511",
            "the run took longer than its time limit",
            why=message,
            fix="run the model at smaller sizes",
        )
    if any(words in message for words in NO_MEMORY):
        return ResourceLimit(
            "E510",
            "there is not enough memory to run the model",
            why=message,
            fix="run the model at smaller sizes",
        )
    if "NOT_IMPLEMENTED" in message:
        return _no_kernel(message)
    return InvalidModel(
        "E321",
        "the model fails while it runs",
        why=message,
        fix="check that the inputs fit the model, above all inputs with sizes or indices",
    )
