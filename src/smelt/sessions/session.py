"""A session: a compiled model that runs on arrays by name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from smelt.errors import SmeltError, UsageError, did_you_mean
from smelt.sessions.binding import IOBinding
from smelt.sessions.cached_session import open_model
from smelt.sessions.compiled import CompiledModel
from smelt.sessions.options import RunOptions, SessionOptions
from smelt.sessions.ports import ModelMetadata, NodeArg
from smelt.sessions.process import PROVIDER, log_once
from smelt.sessions.value import OrtValue

Feeds = Mapping[str, Any]


class InferenceSession:
    """A model that is compiled for this machine, with the methods of ONNX Runtime's session.

    ``path_or_bytes`` is an ONNX file, its bytes, or a folder that ``Artifact.save`` wrote. Nodes
    that the target ``host`` does not support run in ONNX Runtime; if it is not installed, the model
    is refused by the errors of ``smelt.compile``. Several threads may run one session at once.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Compile the model. Raises what ``smelt.load`` and ``smelt.compile`` raise."""
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._options.log_options_without_effect()
        for provider in providers or ():
            name = provider if isinstance(provider, str) else provider[0]
            if name != PROVIDER:
                log_once(f"there is no {name}: sessions of smelt run on the CPU", self._options)
        for name in kwargs:
            log_once(f"InferenceSession({name}=...) has no effect", self._options)
        self._opened_at = time.time_ns()
        self._compiled: CompiledModel = open_model(path_or_bytes, self._options)
        self._described = self._compiled.description
        self._inputs = self._described.inputs
        self.input_names = [port.name for port in self._inputs]
        self.output_names = [port.name for port in self._described.outputs]
        self._known = set(self.input_names)
        self._required = {port.name for port in self._inputs if port.required}

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Return the outputs called ``output_names``, all of them by default, as new arrays.

        ``input_feed`` has an array, an ``OrtValue``, a list or a number for each input by name;
        inputs with a default may be left out. Raises UsageError E632 for names, types and shapes
        that do not fit, all together, E670 for sizes that the operators of the model do not take.
        """
        results = self._run(input_feed, run_options)
        if not output_names:
            return list(results)
        try:
            return [results[self.output_names.index(name)] for name in output_names]
        except ValueError:
            raise self._no_output(output_names) from None

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Return outputs as values, from inputs as values; otherwise as ``run``."""
        results = self.run(output_names, input_dict_ort_values, run_options)
        return [OrtValue(result) for result in results]

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run on the bound inputs, and store the results at the bound outputs."""
        results = self._run(iobinding.inputs, run_options)
        iobinding.store(dict(zip(self.output_names, results, strict=True)))

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        callback: Callable[[Sequence[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in another thread, then call ``callback(results, user_data, error)``.

        ``error`` is empty if the run succeeded, else its text, and the results are empty.
        """

        def run() -> None:
            """Run, and tell the callback the results or the error."""
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except SmeltError as failure:
                results, error = [], str(failure)
            callback(results, user_data, error)

        self._threads.submit(run)

    def io_binding(self) -> IOBinding:
        """Return an object that binds inputs and outputs to memory."""
        return IOBinding(self)

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs of the model, without those that have a default."""
        return [port.argument for port in self._inputs if not port.has_default]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs of the model."""
        return [port.argument for port in self._described.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have a default."""
        return [port.argument for port in self._inputs if port.has_default]

    def get_modelmeta(self) -> ModelMetadata:
        """Return the names, versions and texts of the model."""
        return self._described.metadata

    def get_session_options(self) -> SessionOptions:
        """Return the options of this session."""
        return self._options

    def get_providers(self) -> list[str]:
        """Return the provider of the CPU."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the provider of the CPU, which has no options."""
        return {PROVIDER: {}}

    def set_providers(
        self,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        """Do nothing: the CPU is the only provider."""

    def disable_fallback(self) -> None:
        """Do nothing: the CPU is the only provider."""

    def enable_fallback(self) -> None:
        """Do nothing: the CPU is the only provider."""

    def end_profiling(self) -> str:
        """Return an empty text: sessions write no profiles."""
        return ""

    def get_profiling_start_time_ns(self) -> int:
        """Return when the session was opened, in nanoseconds."""
        return self._opened_at

    def ready(self, timeout: float | None = 0.0) -> bool:
        """True if runs are at full speed, after waiting at most ``timeout`` seconds (None: any).

        The C compiler works in the background while NumPy runs the first calls. ONNX Runtime has
        no such method.
        """
        return self._compiled.ready(timeout)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads of ``run_async``."""
        return ThreadPoolExecutor(thread_name_prefix="smelt-session")

    def _run(self, feeds: Feeds, run_options: RunOptions | None) -> Sequence[Any]:
        """Return all outputs, in order; raises UsageError E632 for feeds that do not fit."""
        if run_options is not None and run_options.terminate:
            raise UsageError(
                "E632",
                "the run was told to terminate",
                why="RunOptions.terminate is set",
                fix="set terminate to False",
            )
        if not self._required <= feeds.keys() <= self._known:
            raise self._wrong_names(feeds)
        values = {
            name: value.numpy() if isinstance(value, OrtValue) else value
            for name, value in feeds.items()
        }
        try:
            return self._compiled.run(*map(values.get, self.input_names))
        except UsageError:
            self._compiled.check_feeds(values)
            raise

    def _wrong_names(self, feeds: Feeds) -> UsageError:
        """Return the error of feeds that lack an input or have another name."""
        missing = sorted(self._required - feeds.keys())
        unknown = sorted(feeds.keys() - self._known)
        problems = [f"there is no value for {name!r}" for name in missing]
        problems += [f"there is no input {name!r}" for name in unknown]
        return UsageError(
            "E632",
            "the feed does not name the inputs of the model",
            at=problems,
            why=f"its inputs are {', '.join(str(port.argument) for port in self._inputs)}",
            fix=f"give an array for {missing[0]!r}" if missing else f"leave out {unknown[0]!r}",
        )

    def _no_output(self, names: Sequence[str]) -> UsageError:
        """Return the error of ``names``, some of which the model does not have."""
        unknown_names = [name for name in names if name not in self.output_names]
        listed = ", ".join(self.output_names)
        return UsageError(
            "E632",
            f"the model has no output {', '.join(map(repr, unknown_names))}",
            why=f"its outputs are {listed}",
            fix=did_you_mean(unknown_names[0], self.output_names, f"ask for {listed}"),
        )
