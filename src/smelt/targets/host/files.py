"""The files of this target: the selected model in ONNX, and a mark with the options.

Kernels and addresses belong to one machine, so none is stored: opening the folder lowers the model
and plans its memory again, in linear time; compiled code is in the machine's cache. Weights are
external data, which is memory-mapped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.frontends.onnx import load
from smelt.frontends.onnx.bodies import refuse_bare
from smelt.frontends.onnx.save import ModelFiles
from smelt.ir import scope
from smelt.ir.files import Content
from smelt.operators.registry import find, is_installed
from smelt.program.memory import MemoryPlan
from smelt.targets.host.options import Options

SCHEMA = "smelt.host/1"
MARK, MODEL, MEMORY = "host.json", "program.onnx", "memory.txt"


class Files(Mapping[str, bytes]):
    """The files of ``model``; ``memory`` returns its memory plan if that is known before a run.

    ``options`` are stored, so that an opened folder runs with them. The model is encoded when a
    file is first read; a model that is only called in this process is never encoded. ``contents``
    writes the files one by one, without all of them in memory. Reading raises Unsupported E203 for
    an operator without a body that only this process declares: no other process could load it.
    """

    def __init__(
        self, model: ir.Model, memory: Callable[[], MemoryPlan | None], options: Options
    ) -> None:
        self._model, self._memory, self._options = model, memory, options

    @cached_property
    def _encoded_files(self) -> ModelFiles:
        """The files of the model.

        Raises Unsupported E203 for an operator without a body that no installed package declares:
        another process could not open the folder. Other operators without a body are written as
        they are, because ``load`` knows them.
        """
        refuse_bare(node for node in scope.nodes(self._model) if _is_of_this_process(node))
        return ModelFiles(self._model, MODEL, inline_limit=0, keep_bare=True)

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """The bytes of the mark file and, if it is known before a run, of the memory plan."""
        mark = {"schema": SCHEMA, "model": MODEL, **asdict(self._options)}
        texts = {MARK: json.dumps(mark, indent=1) + "\n"}
        memory = self._memory()
        if memory is not None:
            texts[MEMORY] = memory.to_text()
        return {name: text.encode() for name, text in texts.items()}

    @property
    def contents(self) -> Mapping[str, Content]:
        """The function or bytes that write each file."""
        return {**self._encoded_files.contents, **self._texts}

    def __getitem__(self, name: str) -> bytes:
        """Return the bytes of the file ``name``."""
        text = self._texts.get(name)
        return self._encoded_files[name] if text is None else text

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)


def _is_of_this_process(node: ir.Node) -> bool:
    """True for an operator without a body that no installed package declares."""
    operator = find(node.domain, node.op_type)
    return operator is not None and operator.body is None and not is_installed(operator)


def read_folder(folder: Path) -> tuple[ir.Model, Options] | None:
    """Return the model and the options in ``folder``; None unless this target wrote it.

    Raises UsageError E616 if the model is missing or the mark damaged, E660 for unknown options,
    and the errors of loading a model.
    """
    mark = _mark(folder / MARK)
    if mark is None and (folder / MARK).is_file() and (folder / MODEL).is_file():
        raise UsageError(
            "E616",
            f"{MARK!r} in {str(folder)!r} is damaged, or of another version",
            why=f"{MODEL!r} in the folder was written by target host, whose mark is {MARK!r}",
            fix="compile the model again",
        )
    if mark is None:
        return None
    if not (folder / MODEL).is_file():
        raise UsageError(
            "E616",
            f"there is no {MODEL!r} in {str(folder)!r}",
            fix="compile the model again",
            why="a folder of target host holds the model, which it compiles again when it is "
            "opened",
        )
    threads = mark.get("threads", 1)
    options = Options(
        engine=str(mark.get("engine", "numpy")),
        threads=threads if isinstance(threads, int) else 0,
        views=mark.get("views") is True,
    )
    return load(folder / MODEL, keep_opset=True), options


def _mark(path: Path) -> dict[str, object] | None:
    """Return the document in the mark file at ``path``; None if this target did not write it."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    of_host = isinstance(document, dict) and document.get("schema") == SCHEMA
    return document if of_host else None
