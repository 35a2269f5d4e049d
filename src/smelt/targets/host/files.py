"""What a folder of this target holds: the selected model in ONNX, and that it is for ``host``.

Kernels and addresses are this machine's, so none is stored: who opens the folder lowers the model
and plans its memory again, in linear time; what was compiled on a machine is in its cache. Weights
lie beside the model, where they are mapped.
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
    """The files of ``model``, whose arena ``memory`` gives, if it is known before a run.

    ``options`` say how it runs where the folder is opened, too.

    The model is encoded when they are asked for: who compiles in order to call never does.
    ``contents`` writes them without holding them. Asking raises Unsupported E203 for an operator
    that is declared in this process only and has no body, which nobody could load.
    """

    def __init__(
        self, model: ir.Model, memory: Callable[[], MemoryPlan | None], options: Options
    ) -> None:
        self._model, self._memory, self._options = model, memory, options

    @cached_property
    def _encoded(self) -> ModelFiles:
        refuse_bare(node for node in scope.nodes(self._model) if _is_of_this_process(node))
        return ModelFiles(self._model, MODEL, inline_limit=0, keep_bare=True)

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        mark = {"schema": SCHEMA, "model": MODEL, **asdict(self._options)}
        texts = {MARK: json.dumps(mark, indent=1) + "\n"}
        memory = self._memory()
        if memory is not None:
            texts[MEMORY] = memory.to_text()
        return {name: text.encode() for name, text in texts.items()}

    @property
    def contents(self) -> Mapping[str, Content]:
        """What writes each file."""
        return {**self._encoded.contents, **self._texts}

    def __getitem__(self, name: str) -> bytes:
        text = self._texts.get(name)
        return self._encoded[name] if text is None else text

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)


def _is_of_this_process(node: ir.Node) -> bool:
    """True for an operator that whoever opens the folder would not have: no package declares it."""
    operator = find(node.domain, node.op_type)
    return operator is not None and operator.body is None and not is_installed(operator)


def read_folder(folder: Path) -> tuple[ir.Model, Options] | None:
    """The model in ``folder`` and how it runs; None unless it is a folder of this target.

    Raises UsageError E616 if its model is missing or its mark is damaged, E660 if nothing
    runs as it says, and what loading a model raises.
    """
    mark = _mark(folder / MARK)
    if mark is None and (folder / MARK).is_file() and (folder / MODEL).is_file():
        raise UsageError(
            "E616",
            f"{MARK!r} in {str(folder)!r} is damaged, or of another version",
            why=f"{MODEL!r} beside it is a program of this target",
            fix="compile the model again",
        )
    if mark is None:
        return None
    if not (folder / MODEL).is_file():
        raise UsageError(
            "E616", f"{MODEL!r} is missing in {str(folder)!r}", fix="compile the model again"
        )
    threads = mark.get("threads", 1)
    options = Options(
        engine=str(mark.get("engine", "numpy")),
        threads=threads if isinstance(threads, int) else 0,
        views=mark.get("views") is True,
    )
    return load(folder / MODEL, keep_opset=True), options


def _mark(path: Path) -> dict[str, object] | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    of_host = isinstance(document, dict) and document.get("schema") == SCHEMA
    return document if of_host else None
