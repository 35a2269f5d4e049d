"""smelt: a retargetable tensor-graph compiler.

It compiles a JAX function or an ONNX model to portable ONNX, self-contained C or an in-process
program. The result is smaller and faster, and is checked after each pass to compute the same.

Names load on first use, so ``import smelt`` loads only what a program needs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smelt.distribution import VERSION
from smelt.errors import SmeltError

if TYPE_CHECKING:
    from smelt.candidate import run
    from smelt.check.reduce import reduce
    from smelt.check.report.html_report import HtmlReport
    from smelt.check.verify import verify
    from smelt.compiler import compile_model as compile  # noqa: A004
    from smelt.compiler import load, optimize, trace
    from smelt.decoding.decoder import Decoder, generate
    from smelt.decoding.standalone.compile import compile_decoder
    from smelt.fewer_bits import quantize
    from smelt.frontends.jax.functions import function
    from smelt.frontends.onnx import save, to_proto
    from smelt.frontends.onnx.extract import extract
    from smelt.frontends.onnx.shared import save_shared
    from smelt.frontends.weights import fill_weights
    from smelt.inspection import inspect
    from smelt.merging.merge import merge
    from smelt.native_regions.compile import compile_with_regions
    from smelt.networks.compile import compile_einsum
    from smelt.networks.contract import contract, einsum
    from smelt.networks.over_semiring import over_semiring
    from smelt.networks.sums import compile_einsums
    from smelt.operators.semiring import Semiring
    from smelt.sessions.session import InferenceSession
    from smelt.targets.base import Artifact, Target
    from smelt.targets.host.eager import run as run_program
    from smelt.targets.saved import open_saved as load_artifact

__version__ = VERSION

_HOMES = {
    "trace": ("smelt.compiler", "trace"),
    "load": ("smelt.compiler", "load"),
    "optimize": ("smelt.compiler", "optimize"),
    "compile": ("smelt.compiler", "compile_model"),
    "Decoder": ("smelt.decoding.decoder", "Decoder"),
    "generate": ("smelt.decoding.decoder", "generate"),
    "compile_decoder": ("smelt.decoding.standalone.compile", "compile_decoder"),
    "fill_weights": ("smelt.frontends.weights", "fill_weights"),
    "compile_with_regions": ("smelt.native_regions.compile", "compile_with_regions"),
    "compile_einsum": ("smelt.networks.compile", "compile_einsum"),
    "compile_einsums": ("smelt.networks.sums", "compile_einsums"),
    "contract": ("smelt.networks.contract", "contract"),
    "einsum": ("smelt.networks.contract", "einsum"),
    "Semiring": ("smelt.operators.semiring", "Semiring"),
    "over_semiring": ("smelt.networks.over_semiring", "over_semiring"),
    "extract": ("smelt.frontends.onnx.extract", "extract"),
    "merge": ("smelt.merging.merge", "merge"),
    "reduce": ("smelt.check.reduce", "reduce"),
    "quantize": ("smelt.fewer_bits", "quantize"),
    "run": ("smelt.candidate", "run"),
    "run_program": ("smelt.targets.host.eager", "run"),
    "function": ("smelt.frontends.jax.functions", "function"),
    "save": ("smelt.frontends.onnx", "save"),
    "save_shared": ("smelt.frontends.onnx.shared", "save_shared"),
    "to_proto": ("smelt.frontends.onnx", "to_proto"),
    "verify": ("smelt.check.verify", "verify"),
    "HtmlReport": ("smelt.check.report.html_report", "HtmlReport"),
    "Artifact": ("smelt.targets.base", "Artifact"),
    "Target": ("smelt.targets.base", "Target"),
    "InferenceSession": ("smelt.sessions.session", "InferenceSession"),
    "inspect": ("smelt.inspection", "inspect"),
    "load_artifact": ("smelt.targets.saved", "open_saved"),
    "load_ipython_extension": ("smelt.notebook", "load_ipython_extension"),
    "unload_ipython_extension": ("smelt.notebook", "unload_ipython_extension"),
}

__all__ = [
    "Artifact",
    "Decoder",
    "HtmlReport",
    "InferenceSession",
    "Semiring",
    "SmeltError",
    "Target",
    "compile",
    "compile_decoder",
    "compile_einsum",
    "compile_einsums",
    "compile_with_regions",
    "contract",
    "einsum",
    "extract",
    "fill_weights",
    "function",
    "generate",
    "inspect",
    "load",
    "load_artifact",
    "merge",
    "optimize",
    "over_semiring",
    "quantize",
    "reduce",
    "run",
    "run_program",
    "save",
    "save_shared",
    "to_proto",
    "trace",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Return the public object ``name``, imported from its home at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'smelt' has no attribute {name!r}")
    value = getattr(import_module(home[0]), home[1])
    globals()[name] = value
    return value


if "IPython" in sys.modules:
    from smelt.notebook import show_models_in_running_shell

    show_models_in_running_shell()


def __dir__() -> list[str]:
    """Return the names of the module, including those that are not imported yet."""
    return sorted([*globals(), *_HOMES])
