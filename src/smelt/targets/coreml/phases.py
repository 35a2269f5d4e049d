"""The phases of the target ``coreml``: the program, its bytes, and the artifact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import IO, Any, TypeAlias

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.symbolic_dims.invented_dims import every_value
from smelt.mlpackage.program import Package, Program
from smelt.mlpackage.write import MANIFEST, MODEL_FILE, WEIGHT_FILE, PackageFiles, manifest
from smelt.targets.base import Artifact, Plan
from smelt.targets.coreml.emission import EXTENSIONS, write_node
from smelt.targets.coreml.facts import Facts
from smelt.targets.coreml.functions import default_function, emit_functions
from smelt.targets.coreml.interface import SAME_BITS
from smelt.targets.coreml.mac_check import check_files
from smelt.targets.coreml.options import IOS, Options
from smelt.targets.coreml.placement import placements
from smelt.targets.coreml.registry import ROWS
from smelt.targets.coreml.runner import package_runner, read_back
from smelt.targets.coreml.writer import Refused, Writer
from smelt.targets.runner import Runner

CoreMLPlan: TypeAlias = Plan[Package, PackageFiles]

CLAIM = (
    "The file is well-formed, and its program, read by an independent implementation of the "
    "documented semantics, agrees with the model in the stated precision. Apple's compiler, "
    "kernels, placement and speed were not checked."
)


def schedule(plan: CoreMLPlan) -> None:
    """Write the graph as a MIL program; sets ``plan.steps``.

    Raises an ErrorList of everything that Core ML lacks.
    """
    options: Options = plan.options
    emissions = emit_functions(plan.model, options)
    name = plan.model.graph.name or ""
    plan.steps = Package(
        IOS[options.ios][1],
        Program({name: each.function for name, each in emissions.items()}),
        {name: each.interface for name, each in emissions.items()},
        default_function=default_function(plan.model, options),
        metadata={"shortDescription": name} if name else {},
    )
    names = next(iter(emissions.values())).names
    doubles = [v for v in every_value(plan.model) if v.dtype == ir.DataType.DOUBLE]
    ports = (*plan.model.graph.inputs, *plan.model.graph.outputs)
    unsigned = [value.name or "" for value in ports if value.dtype == ir.DataType.UINT32]
    facts = {
        "unsigned": dict.fromkeys(unsigned, SAME_BITS),
        "narrowed": {"float64": "float32"} if doubles else {},
        "names": {old: new for old, new in names.items() if old != new},
        "clamped": {old: new for each in emissions.values() for old, new in each.clamped.items()},
        "may_overflow": {
            old: new for each in emissions.values() for old, new in each.may_overflow.items()
        },
    }
    plan.facts |= {name: found for name, found in facts.items() if found}


def port_names(plan: CoreMLPlan) -> dict[str, str]:
    """Return the names of inputs and outputs in the package, by those of the ONNX model."""
    changed = plan.facts.get("names", {})
    ports = (*plan.model.graph.inputs, *plan.model.graph.outputs)
    names = [value.name or "" for value in ports]
    return {name: changed.get(name, name) for name in names}


def allocate(plan: CoreMLPlan) -> None:
    """Place the weights in their file; sets ``plan.memory``."""
    plan.memory = PackageFiles(plan.steps)


class Files(Mapping[str, bytes]):
    """The files of an artifact by path.

    The weights may be larger than the memory, so ``contents`` holds a function that writes them to
    a stream piece by piece; all other files are bytes.
    """

    def __init__(self, files: PackageFiles, folder: str, extra_files: Mapping[str, bytes]) -> None:
        """Hold the package below ``folder`` (with a slash, or empty), and
        ``extra_files`` by path.
        """
        self._files = files
        self.contents: dict[str, Any] = {
            f"{folder}{MANIFEST}": manifest(files.has_weights),
            f"{folder}{MODEL_FILE}": files.model,
        }
        if files.has_weights:
            self.contents[f"{folder}{WEIGHT_FILE}"] = self._write_weights
        self.contents |= extra_files

    def _write_weights(self, stream: IO[bytes]) -> None:
        """Write the weight file to ``stream``."""
        for piece in self._files.weights():
            stream.write(piece)

    def __getitem__(self, name: str) -> bytes:
        content = self.contents[name]
        return content if isinstance(content, bytes) else b"".join(self._files.weights())

    def __iter__(self) -> Iterator[str]:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)


def emit(plan: CoreMLPlan) -> Artifact:
    """Return the artifact with the files of the ``.mlpackage`` folder and the facts for its report.

    With the option ``check``, the package is a folder next to the script that checks it.
    """
    options: Options = plan.options
    extra_files = check_files(plan.model, port_names(plan), options) if options.check else {}
    folder = f"{options.name}.mlpackage/" if options.check else ""
    files = Files(plan.memory, folder, extra_files)
    operations = Counter(each.type for block in plan.steps.blocks() for each in block.operations)
    del operations["const"]
    plan.facts["operations"] = operations.total()
    plan.facts["bytes"] = len(plan.memory.model) + plan.memory.weight_bytes
    report = {
        **plan.facts,
        "operators": dict(sorted(operations.items())),
        "ios": options.ios,
        "precision": options.precision,
        "placement": placements(plan.steps),
        "checked": CLAIM,
    }

    def load() -> Runner:
        """Return a runner of the saved bytes."""
        return package_runner(plan.model, plan.memory, port_names(plan), options)

    def read() -> ir.Model:
        """Return the first function of the saved bytes as a model."""
        return read_back(plan.memory)[0]

    return Artifact("coreml", plan.model, files, plan, report, load, read_back=read)


def computes(model: ir.Model, node: ir.Node) -> bool:
    """True if the target writes ``node`` with its default options, tried on a throw-away writer.

    Passes ask it before they make a node.
    """
    if node.domain and (node.domain, node.op_type) not in EXTENSIONS:
        return False
    if node.op_type not in ROWS:
        return False
    facts = Facts(Writer(17), half=False, keep=frozenset(), opset=model.opset_imports.get("", 1))
    facts.constants, facts.dry = Constants(), True
    try:
        write_node(facts, node)
    except Refused:
        return False
    return True
