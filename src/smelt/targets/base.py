"""What a target is: a value with limits, operators and four phases.

A target is registered by the entry point group ``smelt.targets``; ours use nothing that a third
party's cannot. ``compile`` drives every target the same way::

    legalize, passes, select (graph)  ->  schedule  ->  allocate  ->  emit
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.rule import Rule
from smelt.operators.declare import Operator
from smelt.program import memories
from smelt.program.layouts import LayoutsOf
from smelt.runtime.interface import Value, interface_of
from smelt.spans import span
from smelt.targets.declaration import check_target
from smelt.targets.saved_folder import Saved, entry_of
from smelt.targets.settling import Runner, is_ready


@dataclass(frozen=True)
class Limits:
    """What a target can take.

    ``dtypes``: element types, all if None. ``dynamic_dims``: whether symbolic dims survive to
    run time. ``bounded_dims``: whether it plans for those whose bounds are declared
    (``smelt.ir.bounds``). ``max_rank``: the most dims of a value, any if None. ``opset``: lowest
    and highest ONNX opset. ``operators``: the ``(domain, op_type)`` that it runs after selection,
    all if None.
    """

    dtypes: frozenset[ir.DataType] | None = None
    dynamic_dims: bool = True
    bounded_dims: bool = False
    max_rank: int | None = None
    opset: tuple[int, int] = (1, 10**6)
    operators: frozenset[tuple[str, str]] | None = None


Steps = TypeVar("Steps")
Memory = TypeVar("Memory")


@dataclass
class Plan(Generic[Steps, Memory]):
    """What flows through schedule, allocate and emit; a target says what its own consists of.

    ``model`` is the selected graph; ``options`` is an instance of ``Target.options``, None for
    targets without. ``schedule`` sets ``steps``, whatever the target executes
    (a Program, an ordered node list); ``allocate`` sets ``memory``; ``emit`` reads all three.
    Neither is there before its phase: what a target without that phase has is ``Plan[None, None]``.
    ``facts`` are figures for the report, for instance ``{"arena_bytes": 4096}``.
    """

    model: ir.Model = field(repr=False)
    options: Any = None
    steps: Steps = field(init=False, repr=False, compare=False)
    memory: Memory = field(init=False, repr=False, compare=False)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Artifact:
    """What a target emits.

    ``files`` maps relative file names to their bytes. Where they are large it may also say in
    ``files.contents`` what writes each file piece by piece, so that none is in memory. Calling the
    artifact runs it on this machine with one array an input and returns a tuple of arrays, one an
    output.
    """

    target: str
    model: ir.Model
    files: Mapping[str, bytes]
    plan: Plan[Any, Any]
    report: dict[str, Any] = field(default_factory=dict)
    load: Callable[[], Runner] | None = None
    _runner: Runner | None = field(default=None, repr=False)
    _call: Runner | None = field(default=None, repr=False)

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run on this machine; builds or loads what that needs on the first call.

        Where a pair of real numbers stands for a complex one, the array is complex. An input that
        has a default, or is optional, may be None; all of them may be left out, or the last ones.

        Raises UsageError E616 if the target has no way to do so.
        """
        if self._call is None:
            self._call = entry_of(interface_of(self.model), self.opened())
        return tuple(self._call(*inputs))

    def opened(self) -> Runner:
        """What calls run, built or loaded by the first."""
        if self._runner is None:
            if self.load is None:
                raise UsageError(
                    "E616",
                    f"what target {self.target!r} makes does not run on this machine",
                    fix="choose another target; `smelt targets` lists them",
                )
            self._runner = self.load()
        return self._runner

    def ready(self, timeout: float | None = 0.0) -> bool:
        """Whether calls run as they will from now on, after at most ``timeout`` seconds, or None.

        Some targets compile in the background what was called; ask who measures. One whose
        inputs have known sizes need not have been called.
        """
        return is_ready(self.opened(), timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its selected model and its options; see ``targets.pickled``."""
        from smelt.targets.pickled import pickled

        return pickled(self)

    def __repr__(self) -> str:
        names = ", ".join(self.files) or "no files"
        return f"<Artifact of target {self.target!r}: {len(self.model.graph)} nodes, {names}>"

    def _repr_html_(self) -> str:
        """A table of its files and figures, and the model, for notebooks."""
        from smelt.ir.html.markup import table, titled
        from smelt.ir.html.model import model_html

        rows = [("file", name) for name in self.files]
        rows += [(name.replace("_", " "), fact) for name, fact in self.plan.facts.items()]
        title = f"Artifact of target {self.target}"
        return titled(title, table(rows), model_html(self.model))

    def save(self, directory: str | Path) -> list[Path]:
        """Write every file below ``directory``: all are complete before one appears.

        Whatever fails, the files that stood there survive, and no new folder is left. Raises
        UsageError E614 where no folder can be.
        """
        from smelt.runtime.files import destination, write_together

        root = destination(directory)
        made = [folder for folder in (root, *root.parents) if not folder.exists()]
        contents = getattr(self.files, "contents", self.files)
        try:
            root.mkdir(parents=True, exist_ok=True)
            folders = {(root / name).parent for name in contents}
            inner = sorted((each for each in folders if not each.exists()), reverse=True)
            made = [*inner, *made]
            for folder in inner:
                folder.mkdir(parents=True)
            with span("save", file=str(root)):
                return write_together({root / name: data for name, data in contents.items()})
        except BaseException as error:
            for folder in made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if isinstance(error, OSError):
                why = error.strerror or str(error)
                why = "it is a file, not a folder" if root.is_file() else why
                what = f"cannot write to {str(root)!r}"
                raise UsageError("E614", what, why=why) from error
            raise


class Tune(Protocol):
    """Write costs measured on this machine to ``path``, and return them as a JSON document.

    What the file holds already of the same machine is not measured again.
    """

    def __call__(
        self, path: Path, *, threads: int, seconds: float, say: Callable[[str], None]
    ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Target(Generic[Steps, Memory]):
    """A target. Every phase is a plain function; the defaults do nothing.

    UsageError E649 if it is declared wrong.

    Its phases agree on what the ``Plan`` holds: ``Steps`` and ``Memory`` are inferred from them.

    ``select``: rules that turn ONNX operators into the target's own, those of the highest benefit
    first, or a function that gives them for the options of a compile. ``passes``: pipeline text
    run before selection, beyond the default pipeline. ``schedule``, ``allocate`` fill the plan in
    place; ``emit`` returns the files and, where one exists, a way to run them on this machine.
    ``options``: a frozen dataclass of the target's own options, each with a default; others are
    refused.
    ``kernels``: the operators of ONNX that it computes, or that its ``passes`` turn into such, all
    if None; no pass makes others. ``functions``: whether it takes models with functions, which are
    inlined for others. ``onnx_runtime``: whether its artifact is a model that ONNX Runtime opens;
    what the runtime lacks is then written in other operators.
    ``computes``: whether it computes a node of a model as it stands, for targets whose ``passes``
    let bodies stand for others.
    ``extensions``: the operators beyond ONNX that it computes besides its own; if None, those that
    have a body, as which they are written. ``element_types``: those that it computes an operator
    of a domain on, where it says so and they are not all of ``limits``.
    ``accepts``: whether it takes a node that is within its limits, by attributes, shapes or a
    budget; a text is the reason why not. ``fallback``: the target that runs what this one does not
    take, so that it refuses no model for one node; none if it stands alone. ``cost``: what a region
    of nodes costs more here than on the fallback, its call included: above 0, it stays there.
    Both may take the options of a compile as a second argument.
    ``around``: further steps on the plan by the point where they run, in order: ``before`` or
    ``after`` one of ``select``, ``schedule``, ``allocate`` and ``emit``, as in ``"after select"``.
    ``memories``: what it computes in, for ``program.staging`` and reports; one arena if empty.
    ``layouts``: how the operands and results of an instruction lie in memory, by its ``op``, for
    those that are not row by row; ``program.layouts`` brings a Program to it.
    ``in_process``: what it makes is a program of this process first, and files only if a folder is
    given. ``tolerance``: largest relative error against the source that its arithmetic explains.
    ``tune``: writes a table of costs of this machine to a file, for ``smelt tune``; None if its
    choices are not measured.
    ``open``: what a folder holds that an artifact of this target was saved to, None for any other
    folder; targets whose files cannot be run on this machine go without.
    """

    name: str
    summary: str
    emit: Callable[[Plan[Steps, Memory]], Artifact]
    limits: Limits = Limits()
    operators: Sequence[Operator] = ()
    select: Sequence[Rule] | Callable[[Any], Sequence[Rule]] = ()
    passes: str = ""
    kernels: frozenset[str] | None = None
    computes: Callable[[ir.Model, ir.Node], bool] | None = None
    options: type | None = None
    functions: bool = False
    onnx_runtime: bool = False
    extensions: frozenset[tuple[str, str]] | None = None
    element_types: Callable[[str, str], frozenset[ir.DataType] | None] = lambda domain, op: None
    schedule: Callable[[Plan[Steps, Memory]], None] = lambda plan: None
    allocate: Callable[[Plan[Steps, Memory]], None] = lambda plan: None
    accepts: Callable[..., bool | str] | None = None
    fallback: str | None = None
    cost: Callable[..., float] | None = None
    around: Mapping[str, Sequence[Callable[[Plan[Steps, Memory]], None]]] = field(
        default_factory=dict
    )
    memories: tuple[memories.Memory, ...] = ()
    layouts: Mapping[str, LayoutsOf] = field(default_factory=dict)
    tolerance: float = 1e-4
    in_process: bool = False
    tune: Tune | None = None
    open: Callable[[Path], Saved | None] = lambda folder: None

    def __post_init__(self) -> None:
        check_target(self)
