"""Programs that coremltools builds and converts are read, right, and after our passes no longer than
after its own.

The programs are those of ``mil_passes.txt``, made with coremltools' builder, and modules that it
converts from PyTorch where that is installed.
"""

from __future__ import annotations

import ast
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from targets.coreml.coremltools_check import needs_coremltools
from targets.coreml.mil_text import WORDS, argument, read
from targets.coreml.test_mil_passes import ROWS, Row, feeds_of, types_of

import smelt
from smelt.mlpackage.program import TensorType
from smelt.runtime.runner import run
from smelt.targets.coreml import coreml

pytestmark = needs_coremltools


@pytest.fixture(scope="module")
def ct() -> Any:
    """The module coremltools, without its warnings."""
    logging.getLogger("coremltools").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import coremltools
    return coremltools


def results_of(ct: Any, row: Row, values: dict[str, Any]) -> Any:
    """Return the result ``y`` of a program, built one call of the builder a line."""
    mb = ct.converters.mil.mil.Builder

    def given(node: ast.expr) -> Any:
        """Return an argument for the builder."""
        found = argument(node)
        if isinstance(node, ast.Tuple):
            return [given(each) for each in node.elts]
        return values[found[1:]] if isinstance(found, str) and found[:1] == "%" else found

    for line in row.lines.replace("float_inf", "1e999").splitlines():
        (statement,) = ast.parse(line.partition("#")[0]).body
        assert isinstance(statement, ast.Assign)
        call = statement.value
        assert isinstance(call, ast.Call)
        inputs = {str(each.arg): given(each.value) for each in call.keywords}
        made = getattr(mb, call.func.id)(**inputs)
        target = statement.targets[0]
        names = [each.id for each in target.elts] if isinstance(target, ast.Tuple) else [target.id]
        values |= zip(names, made if len(names) > 1 else [made], strict=True)
    return values["y"]


def program(ct: Any, row: Row, types: dict[str, TensorType]) -> Any:
    """Return the program of a row."""
    mil = ct.converters.mil.mil
    words = {element: word for word, element in WORDS.items()}
    inputs = {
        name: mil.Builder.placeholder(
            [mil.get_new_symbol() if size is None else size for size in kind.dims or ()],
            mil.types.string_to_builtin(words[kind.element]),
        )
        for name, kind in types.items()
    }
    made = mil.Program()
    with mil.Function(inputs, opset_version=ct.target.iOS17) as function:
        function.set_outputs([results_of(ct, row, dict(function.inputs))])
    made.add_function("main", function)
    return made


def inferred(ct: Any, row: Row, values: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return what coremltools' value inference computes; None if an operator lacks it."""
    with ct.converters.mil.mil.Function({}, opset_version=ct.target.iOS17):
        return results_of(ct, row, dict(values)).val


def converted(ct: Any, source: Any, pipeline: Any, path: Path, **options: Any) -> list[str]:
    """Write the package that coremltools makes of ``source``; returns its operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ct.convert(
            source,
            convert_to="mlprogram",
            minimum_deployment_target=ct.target.iOS17,
            compute_precision=ct.precision.FLOAT32,
            pass_pipeline=pipeline,
            skip_model_load=True,
            **options,
        )
        made.save(str(path))
    block = made.get_spec().mlProgram.functions["main"].block_specializations["CoreML7"]
    return [each.type for each in block.operations if each.type != "const"]


UNBUILT = {
    "expand-dynamic-linear": "its linear takes a constant weight only",
    "dequantize-to-constexpr": "its linear takes a constant weight only",
    "expand-high-rank-reshape-and-transpose": "without this pass it converts no more than 5 dims",
}
"""Programs that coremltools does not build or convert."""
WRONGLY_INFERRED = {"concat-to-pixel-shuffle", "replace-stack-reshape to the left"}
"""The value inference of concat leaves out interleave."""


def check(source: Path, model: ir.Model, feeds: list[np.ndarray], theirs: list[str]) -> None:
    """Assert that the package that we make of ``source`` computes what ``model``, as it was read, does,
    and has no more operators than ``theirs``."""
    ours = smelt.compile(source, target=coreml, precision="fp32", ios=17)
    for result, expected in zip(ours(*feeds), run(model, feeds), strict=True):
        np.testing.assert_allclose(result, expected, 1e-4, 1e-5)
    assert ours.report["operations"] <= len(theirs), (ours.report["operators"], theirs)


def test_the_value_inference_agrees_with_what_we_read(ct: Any) -> None:
    """In all programs whose operators have a value inference."""
    compared = 0
    for name in ROWS.keys() - UNBUILT.keys() - WRONGLY_INFERRED:
        row = ROWS[name]
        types = types_of(row.inputs)
        feeds = feeds_of(types)
        wanted = inferred(ct, row, dict(zip(types, feeds, strict=True)))
        if wanted is not None:
            lines = row.lines.replace("float_inf", "1e999")
            (found,) = run(read(types, lines, ["y"], 17), feeds)
            np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=name)
            compared += 1
    assert compared == 48


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_a_built_program(name: str, ct: Any, tmp_path: Path) -> None:
    if name in UNBUILT:
        pytest.skip(UNBUILT[name])
    row = ROWS[name]
    types = types_of(row.inputs)
    feeds = feeds_of(types)
    source = tmp_path / "built.mlpackage"
    converted(ct, program(ct, row, types), ct.PassPipeline.EMPTY, source)
    theirs = program(ct, row, types)
    left = converted(ct, theirs, ct.PassPipeline.DEFAULT, tmp_path / "theirs.mlpackage")
    model = smelt.load(source)
    wanted = inferred(ct, row, dict(zip(types, feeds, strict=True)))
    if wanted is not None and name not in WRONGLY_INFERRED:
        np.testing.assert_allclose(run(model, feeds)[0], wanted, 1e-4, 1e-5)
    check(source, model, feeds, left)


def attention(nn: Any) -> Any:
    """Return a layer of attention with a normalization before it."""

    class Attention(nn.Module):
        """Four heads over vectors of 16."""

        def __init__(self) -> None:
            super().__init__()
            self.norm, self.merge = nn.LayerNorm(16), nn.Linear(16, 16)
            self.parts = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])

        def forward(self, x: Any) -> Any:
            normal = self.norm(x)
            q, k, v = (p(normal).reshape(1, 5, 4, 4).transpose(1, 2) for p in self.parts)
            weights = (q @ k.transpose(2, 3) * 0.5).softmax(-1)
            return x + self.merge((weights @ v).transpose(1, 2).reshape(1, 5, 16))

    return Attention()


MODULES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "convolutions": (
        lambda nn: nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 8, 3, groups=8), nn.Hardswish(), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(8, 5), nn.Softmax(1)),
        ),
        (1, 3, 12, 12),
    ),
    "dense layers": (
        lambda nn: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4)),
        (2, 6),
    ),
    "up and down": (
        lambda nn: nn.Sequential(
            *(nn.Conv2d(2, 4, 3, 2, 1), nn.PReLU(), nn.ConvTranspose2d(4, 4, 2, 2)),
            *(nn.PixelShuffle(2), nn.Upsample(scale_factor=2), nn.Sigmoid()),
        ),
        (1, 2, 8, 8),
    ),
    "attention": (attention, (1, 5, 16)),
    "signals": (
        lambda nn: nn.Sequential(
            *(nn.Conv1d(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.1)),
            *(nn.AvgPool1d(2), nn.Tanh()),
        ),
        (2, 3, 8),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_a_converted_module(name: str, ct: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="converts modules of PyTorch")
    make, dims = MODULES[name]
    torch.manual_seed(0)
    module = make(torch.nn).eval()
    image = torch.rand(dims)
    with torch.no_grad():
        traced, wanted = torch.jit.trace(module, image), module(image).numpy()
    inputs = [ct.TensorType(name="x", shape=dims)]
    source, feeds = tmp_path / "made.mlpackage", [image.numpy()]
    converted(ct, traced, ct.PassPipeline.EMPTY, source, inputs=inputs)
    left = converted(
        ct, traced, ct.PassPipeline.DEFAULT, tmp_path / "theirs.mlpackage", inputs=inputs
    )
    model = smelt.load(source)
    np.testing.assert_allclose(run(model, feeds)[0], wanted, 1e-4, 1e-5)
    check(source, model, feeds, left)
