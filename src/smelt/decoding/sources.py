"""What a decoder is compiled of, and the key of its compiled form in the cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smelt.decoding.state import Array
from smelt.errors import SmeltError
from smelt.runtime.file_digest import digest_of
from smelt.runtime.jit.cache import Cache
from smelt.runtime.jit.cache_key import key_here


@dataclass(frozen=True)
class Sources:
    """The arguments of a ``Decoder``; ``given`` are the arrays of further inputs."""

    model: Any
    first: Any
    given: Mapping[str, Array]
    weights: str | Path | None
    threads: int

    @property
    def has_paths(self) -> bool:
        """True if the models are from files, so that the compiled form can be found again."""
        return all(isinstance(each, str | Path | None) for each in (self.model, self.first))

    def portable(self) -> Sources:
        """Return the same arguments in a form that can be pickled: models as paths or bytes."""
        return replace(self, model=_portable(self.model), first=_portable(self.first))

    def key(self) -> str | None:
        """Return the key of the compiled form; None if it was never compiled, or a file is missing.

        The key changes with the bytes of all files, the inputs that the caller gives, the machine,
        and smelt.
        """
        if not self.has_paths:
            return None
        with contextlib.suppress(SmeltError, OSError, ValueError):
            return self._key(json.loads(Cache().note_text(self._note())))
        return None

    def new_key(self, more_files: Sequence[Path], since: float) -> str | None:
        """Return the key after a compile that also read ``more_files``, which the key then covers.

        None if it cannot be known: a file was changed after the time ``since``, at which the
        compile began, or the cache cannot be written.
        """
        if not self.has_paths:
            return None
        with contextlib.suppress(SmeltError, OSError, ValueError):
            names = [os.path.relpath(file, Path(self.model).parent) for file in more_files]
            paths = [*more_files, *self._named().values()]
            if any(_last_change(path) >= since for path in paths):
                return None
            Cache().note(self._note(), json.dumps(names))
            return self._key(names)
        return None

    def _named(self) -> dict[str, Path]:
        """Return the files that the arguments name."""
        named = {"model": self.model, "first": self.first, "weights": self.weights}
        return {name: Path(path) for name, path in named.items() if path is not None}

    def _digests(self) -> str:
        """Return the digests of the named files as text; raises OSError."""
        return json.dumps({name: digest_of(path) for name, path in self._named().items()})

    def _note(self) -> str:
        """Return the name of the note on the further files that the models refer to."""
        return hashlib.sha256(f"files of decoder {self._digests()}".encode()).hexdigest()

    def _key(self, names: Iterable[str]) -> str:
        """Return the key; ``names`` are further files, relative to the folder of the model."""
        folder = Path(self.model).parent
        further = [(name, digest_of(folder / name)) for name in names]
        given = [
            (name, array.dtype.name, [_rounded_up(size) for size in array.shape])
            for name, array in sorted(self.given.items())
        ]
        facts = json.dumps([self._digests(), further, given, self.threads])
        return key_here("decoder", facts)


def _portable(model: Any) -> Any:
    """Return a path, bytes or None as they are, and any other model as bytes."""
    if model is None or isinstance(model, str | Path | bytes):
        return model
    from smelt.frontends.onnx import to_proto

    return bytes(to_proto(model, functions=True).SerializeToString())


def _rounded_up(size: int) -> int:
    """Return the first power of two that is at least ``size``, as the bounds of programs are."""
    return 1 << (size - 1).bit_length() if size else 0


def _last_change(path: Path) -> float:
    """Return the time of the last change of a file, or of the newest file in a folder."""
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return max(max(each.stat().st_mtime, each.stat().st_ctime) for each in files)
