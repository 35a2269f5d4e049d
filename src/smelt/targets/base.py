"""What a target is: a value with limits, operators and four phases.

A target is registered by the entry point group ``smelt.targets``; smelt's own targets use nothing
that other packages cannot. ``compile`` drives every target the same way::

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
from smelt.program.chips import memories
from smelt.program.chips.layouts import LayoutsOf
from smelt.runtime.interface import Value, interface_of
from smelt.spans import span
from smelt.targets.declaration import check_target
from smelt.targets.limits import NO_LIMITS, Limits
from smelt.targets.runner import Runner, is_ready
from smelt.targets.saved_folder import Saved, entry_of

__all__ = ["Artifact", "Limits", "Plan", "Target", "Tune"]

Steps = TypeVar("Steps")
Memory = TypeVar("Memory")


@dataclass
class Plan(Generic[Steps, Memory]):
    """The data that schedule, allocate and emit pass on; a target chooses its types.

    ``model`` is the selected graph; ``options`` an instance of ``Target.options``, or None.
    ``schedule`` sets ``steps``, whatever the target executes (a Program, an ordered node list);
    ``allocate`` sets ``memory``; ``emit`` reads all three. An attribute does not exist before its
    phase; a target without these phases has a ``Plan[None, None]``. ``facts`` are figures for the
    report, such as ``{"arena_bytes": 4096}``.
    """

    model: ir.Model = field(repr=False)
    options: Any = None
    steps: Steps = field(init=False, repr=False, compare=False)
    memory: Memory = field(init=False, repr=False, compare=False)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Artifact:
    """The output of a target.

    ``files`` maps relative file names to their bytes. For large files, ``files.contents`` may give
    functions that write each file piece by piece, so that none is in memory. Call the artifact with
    one array per input; it runs on this machine and returns a tuple with one array per output.
    ``read_back``, if set, reads the files as a model, whose arithmetic is that of the files.
    """

    target: str
    model: ir.Model
    files: Mapping[str, bytes]
    plan: Plan[Any, Any]
    report: dict[str, Any] = field(default_factory=dict)
    load: Callable[[], Runner] | None = None
    pickle: Callable[[Artifact], tuple[Any, ...] | None] | None = field(default=None, repr=False)
    read_back: Callable[[], ir.Model] | None = field(default=None, repr=False)
    _runner: Runner | None = field(default=None, repr=False)
    _call: Runner | None = field(default=None, repr=False)

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        """Run on this machine; the first call builds or loads what is needed.

        Complex ports take and return complex arrays. An optional input, or one with a default, may
        be None or left out: all of them, or the last ones. Raises UsageError E616 if the target
        cannot run on this machine.
        """
        if self._call is None:
            self._call = entry_of(interface_of(self.model), self.opened())
        return tuple(self._call(*inputs))

    def opened(self) -> Runner:
        """Return the runner behind calls; the first call builds or loads it."""
        if self._runner is None:
            if self.load is None:
                raise UsageError(
                    "E616",
                    f"the artifact of target {self.target!r} does not run here",
                    fix="choose another target; `smelt targets` lists them",
                    why=f"the target {self.target!r} writes files for another machine",
                )
            self._runner = self.load()
        return self._runner

    def ready(self, timeout: float | None = 0.0) -> bool:
        """True if calls run at full speed, after waiting at most ``timeout`` seconds (None: any).

        Use this before measuring: some targets compile a model in the background after its first
        calls. A model with known input sizes is compiled even if it was never called.
        """
        return is_ready(self.opened(), timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the selected model and its options; see ``targets.backend``.

        Raises UsageError E616 for an artifact in parts or of a target that is not registered.
        """
        pickled = self.pickle(self) if self.pickle else None
        if pickled is None:
            raise UsageError(
                "E616",
                f"an artifact for {self.target!r} cannot be pickled",
                fix="save it to a folder, and open that with smelt.load_artifact",
                why="its class keeps objects that belong to this process",
            )
        return pickled

    def __repr__(self) -> str:
        names = ", ".join(self.files) or "no files"
        return f"<Artifact of target {self.target!r}: {len(self.model.graph)} nodes, {names}>"

    def _repr_html_(self) -> str:
        """Return a table of files and figures, and the model, for notebooks."""
        from smelt.ir.html.markup import table, titled
        from smelt.ir.html.model import model_html

        rows = [("file", name) for name in self.files]
        rows += [(name.replace("_", " "), fact) for name, fact in self.plan.facts.items()]
        title = f"Artifact of target {self.target}"
        return titled(title, table(rows), model_html(self.model))

    def save(self, directory: str | Path) -> list[Path]:
        """Write every file below ``directory``; all files are complete before one appears.

        On failure, existing files stay and no new folder is left. Raises UsageError E614 if the
        folder cannot be made or written.
        """
        from smelt.runtime.files import destination, write_together

        root = destination(directory)
        new_folders = [folder for folder in (root, *root.parents) if not folder.exists()]
        contents = getattr(self.files, "contents", self.files)
        try:
            root.mkdir(parents=True, exist_ok=True)
            below = {each for name in contents for each in (root / name).parents}
            inner = sorted(each for each in below if not each.exists())  # an outer one first
            new_folders = [*reversed(inner), *new_folders]
            for folder in inner:
                folder.mkdir()
            with span("save", file=str(root)):
                return write_together({root / name: data for name, data in contents.items()})
        except BaseException as error:
            for folder in new_folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if isinstance(error, OSError):
                why = error.strerror or str(error)
                why = "it is a file, not a folder" if root.is_file() else why
                what = f"cannot write to {str(root)!r}"
                raise UsageError(
                    "E614", what, why=why, fix="choose a folder that you may write to"
                ) from error
            raise


class Tune(Protocol):
    """Measure costs on this machine, write them to ``path``, return them as a JSON document.

    Costs that the file already holds for this machine are not measured again.
    """

    def __call__(
        self, path: Path, *, threads: int, seconds: float, say: Callable[[str], None]
    ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Target(Generic[Steps, Memory]):
    """A target: every phase is a plain function whose default does nothing.

    A wrong declaration raises UsageError E649. ``Steps`` and ``Memory``, the types in the ``Plan``,
    are inferred from the phases.

    ``select``: rules that rewrite ONNX operators to the target's own, highest benefit first, or a
    function from the compile options to the rules. ``passes``: pipeline text that runs before
    selection, after the default pipeline. ``schedule``, ``allocate`` fill the plan in place;
    ``emit`` returns the files and, if possible, a way to run them on this machine. ``options``: a
    frozen dataclass of the target's own options, each with a default; other options are refused.

    ``kernels``: the ONNX operators that it computes, or that its ``passes`` rewrite to such ones;
    None for all. Passes create no others. ``functions``: it accepts models with functions, which
    are otherwise inlined. ``onnx_runtime``: its artifact is a model for ONNX Runtime; operators
    that the runtime lacks are then rewritten. ``computes``: whether it computes a node as written,
    for targets whose ``passes`` replace other nodes by their bodies.

    ``extensions``: the operators beyond ONNX that it computes besides its own; None for those with
    a body, which replaces them. ``element_types``: the element types on which it computes an
    operator, None for all of ``limits``. ``accepts``: whether it supports a node that is within its
    limits; a text is the reason against it. ``fallback``: the target that runs unsupported nodes.
    ``cost``: the extra cost of running a region of nodes here instead of on the fallback, with its
    call; if above 0, the region stays there. ``accepts`` and ``cost`` may take the options as a
    second argument.

    ``around``: additional steps on the plan, by point: ``before`` or ``after`` ``select``,
    ``schedule``, ``allocate`` or ``emit``, as in ``"after select"``. ``memories``: the memories
    that it computes in, for ``program.chips.staging`` and reports; empty for one arena.
    ``layouts``: the layouts of operands and results by the ``op`` of the instruction, if not
    row-major; ``program.chips.layouts`` converts a Program. ``in_process``: the artifact is mainly
    a program of this process; files are written only on request. ``tolerance``: the largest
    relative error that its arithmetic explains. ``tune``: measures costs for ``smelt tune``; None
    if nothing is measured. ``open``: opens a folder saved by this target, None for any other
    folder.
    """

    name: str
    summary: str
    emit: Callable[[Plan[Steps, Memory]], Artifact]
    limits: Limits = NO_LIMITS
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
