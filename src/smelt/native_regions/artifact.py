"""The artifact of a model with native regions: two models and a library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from smelt.runtime.session import Session, SessionAdvice, open_with_library
from smelt.runtime.session_runner import run_session
from smelt.targets.ort.artifact import OrtArtifact, OrtFiles
from smelt.targets.ort.saved import LIBRARY


class NativeArtifact(OrtArtifact):
    """A model whose native regions run in a library; sessions fall back to the plain model."""

    def opener(self, **changes: Any) -> Callable[[], Session]:
        """Return a function that opens a session with the library, from files written once."""
        advice = SessionAdvice.from_json({**self.advice.to_json(), **changes})
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.save(folder.name)
        name = self.plan.options.name

        def open_session() -> Session:
            """Open the model with regions, or the plain one if the library does not load."""
            return open_with_library(Path(folder.name, f"{name}.onnx"), LIBRARY, advice)

        return open_session


class NativeFiles(OrtFiles):
    """The files of the plain model, those of the model with regions, and the library."""

    def __init__(self, plain: OrtFiles, with_regions: OrtFiles, library: bytes, name: str) -> None:
        """Hold the files of both models and the library.

        The attributes of OrtFiles, and files that both models have, are those of ``plain``.
        """
        self.__dict__.update(vars(plain))
        self._parts = (plain, with_regions)
        self.contents = {
            **{each: with_regions.contents[each] for each in with_regions if each not in plain},
            **plain.contents,
            f"{name}{LIBRARY}": library,
        }

    @property
    def size(self) -> int:
        """The size of both models in bytes."""
        return sum(files.size for files in self._parts)

    def __getitem__(self, name: str) -> bytes:
        """Return the bytes of the file ``name``."""
        content = self.contents[name]
        return content if isinstance(content, bytes) else super().__getitem__(name)


def with_library(plain: OrtArtifact, with_regions: OrtArtifact, library: bytes) -> NativeArtifact:
    """Return the artifact of both models and the library; it runs the model with regions."""
    assert isinstance(plain.files, OrtFiles)
    assert isinstance(with_regions.files, OrtFiles)
    files = NativeFiles(plain.files, with_regions.files, library, plain.plan.options.name)
    native = NativeArtifact(plain.target, plain.model, files, plain.plan, dict(plain.report))
    native.load = partial(run_session, plain.model, partial(native.session, threads=1))
    return native
