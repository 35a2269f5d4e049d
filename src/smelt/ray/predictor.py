"""A model as a callable class for ``map_batches`` of Ray Data."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from smelt.errors import UsageError, did_you_mean
from smelt.ray.rows import Columns, batch_size, run_by_rows
from smelt.runtime.complex_arrays import on_pairs

if TYPE_CHECKING:
    import onnx_ir as ir

    from smelt.candidate import Run
    from smelt.decoding.decoder import Decoder
    from smelt.ray.generation import Generation
    from smelt.runtime.interface import Interface, Port
    from smelt.targets.base import Artifact

Source: TypeAlias = "str | Path | bytes | ir.Model | Artifact | Decoder"


class Predictor:
    """Runs a model on batches: takes a dict of NumPy arrays, returns a dict of NumPy arrays.

    ::

        ds.map_batches(
            smelt.ray.Predictor, fn_constructor_args=("model.onnx",),
            concurrency=2, batch_format="numpy",
        )

    ``model`` is a model, the folder of a compiled model, or an artifact that has files. The first
    batch loads it and compiles it for ``target`` (default: ONNX Runtime), so a Predictor is small
    to send; a model passed as an object instead of a path is sent with it. ``dims`` binds symbolic
    dims to sizes. ``columns`` maps an input to its column where the names differ. ``outputs``
    selects outputs, None for all; ``keep`` lists columns that are copied to the results.
    ``threads`` is ONNX Runtime's number of threads.

    A model with a fixed batch size gets the rows in portions of that size. The last portion is
    filled up with copies of its last row, and the results of these copies are dropped; without
    ``pad`` an incomplete portion raises an error.

    With ``generate``, the model is a decoder: a ``smelt.Decoder``, or the path of its model or
    folder. The column ``ids`` has prompts, and the result ``tokens`` the new tokens of each row.
    ``generate`` has the options of ``Decoder.generate``. Each Predictor loads a decoder of its own.
    """

    def __init__(
        self,
        model: Source,
        *,
        target: str | None = None,
        dims: Mapping[str, int] | None = None,
        columns: Mapping[str, str] | None = None,
        outputs: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        pad: bool = True,
        threads: int = 1,
        generate: Mapping[str, Any] | None = None,
    ) -> None:
        """Store the model and the settings; the first batch loads the model.

        Raises UsageError E697 for ``target``, ``dims`` or ``outputs`` of a decoder.
        """
        if generate is not None and (target is not None or dims or outputs is not None):
            raise UsageError(
                "E697",
                "target, dims or outputs are given for a decoder",
                why="a decoder runs on the target host, and its output is 'tokens'",
                fix="leave them out",
            )
        self._generate = None if generate is None else dict(generate)
        self._source = _portable(model)
        self._target = target
        self._dims = dict(dims or {})
        self._columns = dict(columns or {})
        self._outputs = None if outputs is None else tuple(outputs)
        self._keep = tuple(keep)
        self._pad = pad
        self._threads = threads
        self._open()

    def _open(self) -> None:
        """Create the lock and the empty slot of the loaded model, which cannot be pickled."""
        self._lock = threading.Lock()
        self._loaded: _Loaded | Generation | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_lock", "_loaded")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled predictor; its model is loaded again at the first batch."""
        vars(self).update(state)
        self._open()

    def __call__(self, batch: Columns) -> dict[str, np.ndarray]:
        """Return the outputs of the model for the rows of ``batch``, by name.

        Raises UsageError E697 if a column is missing or rows do not fit, E632 if a type does not
        fit, Unsupported E696 if the model has no rows, and the errors of loading and compiling.
        """
        if not isinstance(batch, Mapping):
            what = f"a batch is a dict of arrays, not a {type(batch).__name__}"
            raise UsageError(
                "E697",
                what,
                fix='map_batches(..., batch_format="numpy")',
                why="a predictor takes columns as NumPy arrays",
            )
        with self._lock:  # A compiled model has one arena.
            if self._loaded is None:
                self._loaded = self._load()
            results = self._loaded(batch, self._pad)
        return {name: _column(batch, name) for name in self._keep} | results

    def _load(self) -> _Loaded | Generation:
        """Return the model, loaded and compiled in this process, with its outputs selected."""
        if self._generate is not None:
            return self._decoder(self._generate)
        from smelt.candidate import RunSettings, candidate

        settings = RunSettings(optimized=True, threads=self._threads)
        with tempfile.TemporaryDirectory(prefix="smelt-artifact-") as folder:
            source = self._source
            if isinstance(source, dict):
                _unpack(source, Path(folder))
                source = folder
            opened = candidate(
                source, "the model", self._target, dims=self._dims, settings=settings
            )
            assert opened.interface is not None
            loaded = _Loaded(opened.interface, opened.open(self._dims), self._columns)
        loaded.choose(self._outputs, self._dims)
        return loaded

    def _decoder(self, options: Mapping[str, Any]) -> Generation:
        """Return the decoder, loaded in this process."""
        from smelt.decoding.decoder import Decoder
        from smelt.ray.generation import Generation

        source = self._source
        if not isinstance(source, Decoder):
            source = Decoder(source, threads=self._threads)
        return Generation(source, self._columns, options)


class _Loaded:
    """A loaded model, the column of each input, and the selected outputs."""

    def __init__(self, interface: Interface, run: Run, columns: Mapping[str, str]) -> None:
        """Map inputs to columns; UsageError E697 for an input that the model does not have."""
        self.ports = {port.name: port for port in interface.inputs}
        self.outputs = {port.name: port for port in interface.outputs}
        self.columns = {name: columns.get(name, name) for name in self.ports}
        self.run = on_pairs(interface, run)
        self.size: int | None = None
        self.selected: list[str] = []
        for name in columns:
            if name not in self.ports:
                raise _unknown_name("input", name, self.ports)

    def choose(self, outputs: Sequence[str] | None, dims: Mapping[str, int]) -> None:
        """Select ``outputs``, all if None; raises UsageError E697 for an unknown name."""
        self.selected = list(self.outputs if outputs is None else outputs)
        for name in self.selected:
            if name not in self.outputs:
                raise _unknown_name("output", name, self.outputs)
        required = [port for port in self.ports.values() if port.default is None]
        self.size = batch_size(required, [self.outputs[name] for name in self.selected], dims)

    def __call__(self, batch: Columns, pad: bool) -> dict[str, np.ndarray]:
        """Return the selected outputs by name; ``pad`` allows filling up a fixed batch size."""
        inputs = {
            name: _column(batch, self.columns[name])
            for name, port in self.ports.items()
            if port.default is None or self.columns[name] in batch
        }

        def run(rows: Columns) -> list[np.ndarray]:
            """Return the selected outputs for some rows."""
            results = self.run(*(rows.get(name) for name in self.ports))
            named = dict(zip(self.outputs, results, strict=True))
            return [np.asarray(named[name]) for name in self.selected]

        return dict(zip(self.selected, run_by_rows(run, inputs, self.size, pad), strict=True))


def _portable(model: Source) -> Any:
    """Return ``model`` in a form that can be sent to another process: a path, bytes, a decoder."""
    from smelt.decoding.decoder import Decoder
    from smelt.targets.base import Artifact
    from smelt.targets.saved import open_saved

    if isinstance(model, str | Path):
        return str(model)
    if isinstance(model, bytes | Decoder):
        return model
    if not isinstance(model, Artifact):
        from smelt.frontends.onnx import to_proto

        return bytes(to_proto(model, functions=True).SerializeToString())
    with tempfile.TemporaryDirectory(prefix="smelt-artifact-") as folder:
        _unpack(model.files, Path(folder))
        open_saved(folder)  # raises an error if artifacts of this target cannot run elsewhere
    return dict(model.files)


def _unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write ``files`` to ``folder``."""
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _unknown_name(kind: str, name: str, ports: Mapping[str, Port]) -> UsageError:
    """Return E697 for a name that the model does not have."""
    fix = did_you_mean(name, ports, f"the model has {', '.join(ports)}")
    return UsageError(
        "E697",
        f"the model has no {kind} {name!r}",
        fix=fix,
        why="columns are matched to inputs and outputs by name",
    )


def _column(batch: Columns, name: str) -> np.ndarray:
    """Return the column ``name``; UsageError E697 if there is none."""
    if name not in batch:
        listed = ", ".join(map(repr, batch)) or "none"
        fix = did_you_mean(name, batch, "columns={input: column} maps names")
        raise UsageError("E697", f"there is no column {name!r}", why=f"there are {listed}", fix=fix)
    return np.asarray(batch[name])
