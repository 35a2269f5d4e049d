"""The programs of a decoder: from a folder or the cache, or else compiled in this process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.decoding.kept import drop_old, folder_of, kept_decoder
from smelt.decoding.program import Programs
from smelt.decoding.saved import AGAIN, SavedDecoder, is_saved, read_decoder, refused
from smelt.decoding.sources import Sources
from smelt.decoding.state import Array
from smelt.errors import UsageError
from smelt.runtime.jit.build import warn_once

if TYPE_CHECKING:
    from smelt.decoding.compiled import Models
    from smelt.decoding.save import Facts, PartialFolder

NOT_KEPT = "compiled decoders are not kept: {}"


class Forms:
    """The programs of a decoder by number of sequences.

    ``is_final``: they come from a folder, so that others cannot be compiled. ``step`` and ``first``
    describe the models, ``sources`` are the arguments.
    """

    def __init__(
        self,
        model: Any,
        first: Any,
        given: Mapping[str, Array],
        weights: str | Path | None,
        threads: int | None,
    ) -> None:
        """Load the programs of one sequence if they were compiled before, else read the models.

        Raises UsageError E807 for a folder that cannot be run with these arguments, and what
        ``Models`` raises.
        """
        self.is_final = is_saved(model)
        self.sources = Sources(model, first, given, weights, threads or 1)
        self._began = time.time()
        self._folder: Path | None = None
        self._partial: PartialFolder | None = None
        self._compiled: dict[int, Programs] = {}
        self._rooms: dict[int, int | None] = {}
        self._loaded = self._found(threads)
        if self._loaded is not None:
            self.step, self.first = self._loaded.step, self._loaded.first
        else:
            self.step = self._models.step.network
            self.first = None if self._models.first is None else self._models.first.network

    def _found(self, threads: int | None) -> SavedDecoder | None:
        """Return the compiled decoder of the given folder or of the cache; None if neither has one.

        Raises UsageError E807 for a folder that cannot be run with the arguments.
        """
        sources = self.sources
        if not self.is_final:
            key = sources.key()
            return None if key is None else kept_decoder(key, sources.given)
        folder = Path(sources.model)
        if sources.first is not None or sources.weights is not None:
            why = "a second model, or weights, are given with it"
            raise refused(folder, why, fix="leave them out: they are part of it")
        return read_decoder(folder, sources.given, threads)

    @cached_property
    def _models(self) -> Models:
        """The optimized models; imports the compiler."""
        from smelt.decoding.compiled import Models
        from smelt.ir.collector import paused_collector

        with paused_collector():
            return Models(self.sources)

    def programs(self, batch: int, takes: Callable[[Programs], bool] | None = None) -> Programs:
        """Return programs for ``batch`` sequences for which ``takes`` is true.

        Those that were compiled before if possible; else others are compiled. Raises UsageError
        E806 if these come from a folder and are too small.
        """
        if self._loaded is not None and batch == 1:
            programs = self._loaded.programs
            if takes is None or takes(programs):
                return programs
            if self.is_final:
                raise UsageError(
                    "E806",
                    f"the compiled decoder is for {self._loaded.context} tokens",
                    why="the tokens are more, or the arrays of other inputs are larger than those "
                    "that it was compiled with",
                    fix=f"{AGAIN} --context {2 * self._loaded.context}",
                )
            self._loaded = None
        with self._into_file(batch):
            if batch not in self._compiled:
                self._compiled[batch] = self._models.programs(batch)
            programs = self._compiled[batch]
            if takes is not None:
                takes(programs)
        return programs

    def is_loaded(self, batch: int) -> bool:
        """True if the programs for ``batch`` sequences come from a folder or the cache."""
        return batch == 1 and self._loaded is not None

    @contextlib.contextmanager
    def _into_file(self, batch: int) -> Iterator[None]:
        """Pack weights into a file inside of the block, if the programs will be kept."""
        from smelt.decoding.save import PartialFolder
        from smelt.ir.tensors.lazy_concat import concatenated_once
        from smelt.native.packed_once import weights_in

        if batch != 1 or not (self._folder or self.sources.has_paths):
            yield
            return
        parent = folder_of("new").parent if self._folder is None else self._folder.parent
        if self._partial is None:
            try:
                self._partial = PartialFolder(parent)
            except OSError as error:
                if self._folder is not None:
                    raise _unwritten(self._folder, error) from error
                warn_once(NOT_KEPT.format(error))
        file = None if self._partial is None else self._partial.weights
        with concatenated_once(), weights_in(file):
            yield

    def room(self, batch: int) -> int | None:
        """Return the most tokens that the decoder has room for, None for any number."""
        if batch == 1 and self._loaded is not None:
            return self._loaded.room
        if batch not in self._rooms:
            from smelt.decoding.room import room_of

            step, given = self.programs(batch).step, self.sources.given
            with self._into_file(batch):
                self._rooms[batch] = room_of(step, batch, given, may_run=self.first is None)
        return self._rooms[batch]

    def save_to(self, folder: Path) -> None:
        """Let ``keep`` write the programs to ``folder``.

        Raises UsageError E807 if it holds other files or cannot be written, or if the programs come
        from a folder.
        """
        if self.is_final:
            why = "it comes from such a folder"
            raise refused(folder, why, fix="copy that folder", verb="written")
        try:
            if folder.exists() and not is_saved(folder) and any(folder.iterdir()):
                why = "the folder holds other files"
                raise refused(folder, why, fix="name a new folder", verb="written")
        except OSError as error:  # a file is there, or the folder cannot be read
            raise _unwritten(folder, error) from error
        self._loaded, self._folder = None, folder

    def keep(self, context: int) -> None:
        """Write the programs of one sequence, compiled for ``context`` tokens, and load them.

        They go to the folder of ``save_to``, else to one in the cache if the models are from files.
        Raises UsageError E807 if ``save_to`` was called and NumPy runs a part of the programs.
        """
        partial, self._partial = self._partial, None
        if self._loaded is not None or partial is None:
            return
        folder, self._folder = self._folder, None
        if folder is not None:
            try:
                is_written = partial.write(folder, self._compiled[1], self._facts(context))
            except OSError as error:
                raise _unwritten(folder, error) from error
            if not is_written:
                why = "NumPy runs a part of it, which cannot be stored"
                raise refused(folder, why, fix="run the model itself", verb="written")
            self._loaded = read_decoder(folder, self.sources.given)
            del self._compiled[1]
            return
        key = self.sources.new_key(self._models.files, self._began)
        try:
            if key and partial.write(folder_of(key), self._compiled[1], self._facts(context)):
                drop_old(key)
                self._loaded = kept_decoder(key, self.sources.given)
                if self._loaded is not None:
                    del self._compiled[1]
        except OSError as error:
            warn_once(NOT_KEPT.format(error))

    def _facts(self, context: int) -> Facts:
        """Return what is stored with the programs."""
        from smelt.decoding.save import Facts

        given, threads = list(self.sources.given), self.sources.threads
        return Facts(self.step, self.first, self.room(1), context, given, threads)


def _unwritten(folder: Path, error: OSError) -> UsageError:
    """Return E807 for a folder that the system does not let this process write."""
    why = f"{error.strerror or error}: {error.filename or folder}"
    return refused(folder, why, fix="name a new folder that can be written", verb="written")
