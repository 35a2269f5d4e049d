"""What smelt takes from libraries beyond their public names: where, and whether it is there.

Nothing here imports smelt, which may fail to load once a library has moved something.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "smelt"

JAX = (
    *(f"frontends/jax/{name}.py" for name in ("compat", "frames", "prng", "references")),
    "frontends/stablehlo/jax_names.py",
)
LIBRARY_FUNCTIONS = "frontends/jax/patching/library_functions.py"

PLACES: Mapping[str, tuple[str, ...]] = {
    "jax": (*JAX, LIBRARY_FUNCTIONS),
    "flax": (LIBRARY_FUNCTIONS,),
    "equinox": (LIBRARY_FUNCTIONS,),
    "onnx_ir": ("ir/onnx_ir_private.py",),
    "onnx_shape_inference": (
        *("ir/shapes/shape_context.py", "ir/shapes/shape_registry.py", "ir/onnx_ir_private.py"),
    ),
    "onnx": ("runtime/fold.py", "runtime/reference_loop.py"),
    "onnxruntime": ("runtime/values.py",),
    "opt_einsum": ("operators/contraction_finders.py",),
    "torch": ("pytorch/backend.py", "pytorch/export.py"),
}
"""The files in which private names of a library may stand."""

SEMI_PUBLIC = ("jax._src", "jax.extend", "jax.interpreters")
"""Modules of JAX of which each release may change anything."""


def _onnx_ir() -> Any:
    return importlib.import_module("onnx_ir")


def _shapes() -> Any:
    return importlib.import_module("onnx_shape_inference")


def _reader(library: str) -> Any:
    return importlib.import_module(f"{library}._symbolic_shapes").sympy


def _ort_value() -> Any:
    numpy, ort = importlib.import_module("numpy"), importlib.import_module("onnxruntime")
    return ort.OrtValue.ortvalue_from_numpy(numpy.zeros(1))


OBJECTS: Mapping[str, tuple[Callable[[], Any], str]] = {
    "opt_einsum.paths._PATH_OPTIONS": (
        lambda: importlib.import_module("opt_einsum.paths"),
        "_PATH_OPTIONS",
    ),
    "onnx_ir.Value._uses": (lambda: _onnx_ir().Value(name="x"), "_uses"),
    "onnx_ir.Value._add_usage": (lambda: _onnx_ir().Value, "_add_usage"),
    "onnx_ir.Value._remove_usage": (lambda: _onnx_ir().Value, "_remove_usage"),
    "onnx_ir.Node._inputs": (lambda: _onnx_ir().Node("", "Op", []), "_inputs"),
    "onnx_ir.Graph.outputs._ref_counter": (
        lambda: _onnx_ir().Graph([], [], nodes=[]).outputs,
        "_ref_counter",
    ),
    "onnx_ir.SymbolicDim._expr": (lambda: _onnx_ir().SymbolicDim("N"), "_expr"),
    "onnx_ir.SymbolicDim._expr_cache": (lambda: _onnx_ir().SymbolicDim("N"), "_expr_cache"),
    "onnx_ir._symbolic_shapes.sympy.Symbol": (lambda: _reader("onnx_ir"), "Symbol"),
    "onnx_shape_inference._symbolic_shapes.sympy.Symbol": (
        lambda: _reader("onnx_shape_inference"),
        "Symbol",
    ),
    "onnx_ir._symbolic_shapes._ALLOWED_FUNCTIONS": (
        lambda: importlib.import_module("onnx_ir._symbolic_shapes"),
        "_ALLOWED_FUNCTIONS",
    ),
    "onnx_shape_inference._symbolic_shapes.ALLOWED_FUNCTIONS": (
        lambda: importlib.import_module("onnx_shape_inference._symbolic_shapes"),
        "ALLOWED_FUNCTIONS",
    ),
    "onnx_shape_inference.ShapeInferenceContext._symbolic_values": (
        lambda: _shapes().ShapeInferenceContext({"": 20}),
        "_symbolic_values",
    ),
    "onnx_shape_inference.ShapeInferenceContext._check_no_anonymous_dims": (
        lambda: _shapes().ShapeInferenceContext,
        "_check_no_anonymous_dims",
    ),
    "onnx_shape_inference.ShapeInferenceContext._refine_shape": (
        lambda: _shapes().ShapeInferenceContext,
        "_refine_shape",
    ),
    "onnx_shape_inference._engine._registry": (
        lambda: importlib.import_module("onnx_shape_inference._engine"),
        "_registry",
    ),
    "onnx.reference.ops._op_list.load_op": (
        lambda: importlib.import_module("onnx.reference.ops._op_list"),
        "load_op",
    ),
    "onnxruntime.OrtValue._ortvalue": (_ort_value, "_ortvalue"),
}
"""Attributes of objects: how to get one that should have it, and its name."""


def jax_names(source: str) -> list[str]:
    """What ``source`` takes from modules of JAX that are not stable: ``module:attribute``."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            if full.startswith(SEMI_PUBLIC):
                modules[alias.asname or alias.name] = full
                found[f"{node.module}:{alias.name}"] = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = node.value.id
            if owner in modules:
                found[f"{modules[owner]}:{node.attr}"] = None
            elif owner == "jax" and node.attr in ("make_user_context", "enable_x64", "typeof"):
                found[f"jax:{node.attr}"] = None
    return list(found)


def is_there(name: str) -> bool:
    """Whether the attribute path behind the colon exists in the module before it."""
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for attribute in path.split("."):
            found = _member(found, attribute)
    except (ImportError, AttributeError):
        return False
    return True


def _member(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        if hasattr(builtins, name):  # a module finds those, too, unless it has its own
            return getattr(builtins, name)
        return importlib.import_module(f"{owner.__name__}.{name}")


def private_uses() -> Iterator[tuple[str, str]]:
    """File and name of each private attribute or module that smelt itself does not define."""
    own: set[str] = set()
    private: list[tuple[str, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            own.update(_defined(node))
            private += [(file, name) for name in _read(node) if _is_private(name)]
    yield from (use for use in private if use[1] not in own)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and _is_own(node):
        yield node.attr


def _is_own(node: ast.Attribute) -> bool:
    """True for an attribute that an object of smelt sets of itself."""
    owner = node.value
    own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
    return own and isinstance(node.ctx, ast.Store)


def _read(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and not _is_own(node):
        yield node.attr
    elif isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("smelt"):
        yield from node.module.split(".")
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield from alias.name.split(".")
