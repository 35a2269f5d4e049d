"""The artifact of the target ``ort``: the model, advice for sessions, and
sessions opened with it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import onnx_ir as ir

from smelt.errors import ErrorList
from smelt.frontends.onnx.bodies import attach_bodies
from smelt.frontends.onnx.save import INLINE_LIMIT, ModelFiles
from smelt.ir.approximation import approximation_of
from smelt.program.legality import no_kernel
from smelt.runtime.session import LEAST_MAPPED_BYTES, Session, SessionAdvice, open_session
from smelt.targets.base import Artifact, Plan
from smelt.targets.runner import Runner

ADVICE = "session.json"
NOT_EXPRESSED = "neither ONNX nor ONNX Runtime has an operator for it, and it has no body"


class OrtFiles(ModelFiles):
    """The files of the model, and ``session.json`` with ``advice``."""

    def __init__(self, plan: Plan[None, None], advice: SessionAdvice) -> None:
        """Encode the model of ``plan``, and add the ``advice`` for sessions as a file."""
        limit = min(plan.options.inline_limit, INLINE_LIMIT)
        name = f"{plan.options.name}.onnx"
        super().__init__(plan.model, name, inline_limit=limit, smallest=LEAST_MAPPED_BYTES)
        self.advice = advice
        self.contents[ADVICE] = self._write_advice

    def with_advice(self, advice: SessionAdvice) -> OrtFiles:
        """Return the same model files with other advice."""
        other = copy(self)
        other.advice = advice
        other.contents = {**self.contents, ADVICE: other._write_advice}
        return other

    def _write_advice(self, stream: BinaryIO) -> None:
        """Write the session advice as JSON."""
        stream.write((json.dumps(self.advice.to_json(), indent=1) + "\n").encode())


class OrtArtifact(Artifact):
    """A model for ONNX Runtime; ``advice`` has the options for its sessions."""

    @property
    def advice(self) -> SessionAdvice:
        """The options with which ``session`` opens the model; also saved in the folder."""
        assert isinstance(self.files, OrtFiles)
        return self.files.advice

    def advised(self, advice: SessionAdvice) -> OrtArtifact:
        """Return the same model with other advice and a copy of the report."""
        assert isinstance(self.files, OrtFiles)
        files, report = self.files.with_advice(advice), dict(self.report)
        return replace(self, files=files, report=report)

    def session(self, **changes: Any) -> Session:
        """Open a session of the model with ``advice``, overridden by ``changes`` such as
        ``threads=4``.

        Raises UsageError E631 without onnxruntime, E663 for unknown session options.
        """
        return self.opener(**changes)()

    def opener(self, **changes: Any) -> Callable[[], Session]:
        """Return a function that opens a session, as ``session`` does; the file is written once."""
        advice = SessionAdvice.from_json({**self.advice.to_json(), **changes})
        (name,) = (name for name in self.files if name.endswith(".onnx"))
        if len(self.files) == 2:
            return partial(open_session, self.files[name], advice)

        # External weights are read from their file, which is kept as long as the opener.
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.save(folder.name)
        return lambda: open_session(Path(folder.name) / name, advice)


def write_model(plan: Plan[None, None]) -> OrtArtifact:
    """Write ``NAME.onnx`` with ONNX Runtime operators, and ``session.json`` with session options.

    Raises an ErrorList of Unsupported E201 for operators that the runtime lacks and that have no
    body.
    """
    model = plan.model
    lacking = attach_bodies(model)
    if lacking:
        names = ((f"{node.domain}.{node.op_type}", f"node {node.name!r}") for node in lacking)
        raise ErrorList(no_kernel("ort", *name, NOT_EXPRESSED) for name in names)
    files = OrtFiles(plan, SessionAdvice())
    plan.facts["bytes"] = files.size
    rough = approximation_of(model)
    if rough:
        plan.facts["approximation"] = rough

    return OrtArtifact("ort", model, files, plan, dict(plan.facts), partial(run_model, model))


def run_model(model: ir.Model) -> Runner:
    """Return a runner of ``model`` by ONNX Runtime.

    Graph optimizations of the runtime are off, so that comparisons test the model as written. They
    are on for a model with approximated weights, so that its error is that of a user's session.
    """
    from smelt.runtime.runner import open_runner

    return open_runner(model, optimized=bool(approximation_of(model)))
