"""Export the networks of ``bench/architectures`` by both exporters of PyTorch into a folder.

    python -m bench.export_architectures FOLDER [--only bert,vit] [--full]
        [--exporters dynamo,torchscript] [--dims static,dynamic] [--layers 2] [--width 64]
        [--types float32,float16,bfloat16]

Files are called NETWORK.EXPORTER.DIMS.onnx, those of other types than float32
NETWORK.EXPORTER.DIMS.TYPE.onnx. ``bench.quantize_architectures`` makes quantized ones.
What an exporter refuses is told and left out. Needs
torch, transformers and onnxscript, in an environment of their own.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path

import torch
from transformers.utils import logging as hf_logging

from bench.architectures import ARCHITECTURES
from bench.architectures.network import Network, Size
from bench.export_models import forget_places


def dynamo(network: Network, path: Path, dynamic: bool) -> None:
    shapes = tuple(
        {axis: name for axis, name in enumerate(names) if name} for names in network.dims.values()
    )
    plain = network.plain_inputs
    given = shapes if plain is None else (*shapes[:plain], shapes[plain:])
    torch.onnx.export(
        network.module,
        network.inputs,
        str(path),
        input_names=list(network.dims),
        dynamic_shapes=given if dynamic else None,
        dynamo=True,
        external_data=False,
    )
    forget_places(path)


def torchscript(network: Network, path: Path, dynamic: bool) -> None:
    axes = {
        name: {axis: dim for axis, dim in enumerate(dims) if dim}
        for name, dims in network.dims.items()
    }
    torch.onnx.export(
        network.module,
        network.inputs,
        str(path),
        input_names=list(network.dims),
        dynamic_axes=axes if dynamic else None,
        opset_version=17,
        dynamo=False,
    )


EXPORTERS: dict[str, Callable[[Network, Path, bool], None]] = {
    "dynamo": dynamo,
    "torchscript": torchscript,
}


def of_type(network: Network, dtype: torch.dtype) -> Network:
    """The network with weights and inputs of another floating-point type."""
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in network.inputs)
    return dataclasses.replace(network, module=network.module.to(dtype), inputs=inputs)


def export(name: str, size: Size, exporter: str, dims: str, folder: Path, kind: str) -> str:
    """Write one file; what went wrong in one line, or nothing."""
    path = folder / f"{name}.{exporter}.{dims}{'' if kind == 'float32' else f'.{kind}'}.onnx"
    heard = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(heard), redirect_stderr(heard):
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            network = ARCHITECTURES[name](size)
            network.module.eval()
            for parameter in network.module.parameters():  # biases of 0 would be folded away
                parameter.data += 0.02 * torch.randn_like(parameter)
            network = of_type(network, getattr(torch, kind))
            with torch.no_grad():
                EXPORTERS[exporter](network, path, dims == "dynamic")
    except Exception as error:  # noqa: BLE001 - exporters raise whatever the library raises
        path.unlink(missing_ok=True)
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(ARCHITECTURES))
    parser.add_argument("--exporters", default=",".join(EXPORTERS))
    parser.add_argument("--dims", default="static,dynamic")
    parser.add_argument("--types", default="float32")
    parser.add_argument("--full", action="store_true", help="as many layers as are published")
    for field in dataclasses.fields(Size):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    options = parser.parse_args()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    hf_logging.set_verbosity_error()
    options.folder.mkdir(parents=True, exist_ok=True)
    given = {field.name: getattr(options, field.name) for field in dataclasses.fields(Size)}
    size = Size(**{**given, "layers": None if options.full else options.layers})
    for name in options.only.split(","):
        for exporter in options.exporters.split(","):
            for dims, kind in product(options.dims.split(","), options.types.split(",")):
                refused = export(name, size, exporter, dims, options.folder, kind)
                print(f"{name} {exporter} {dims} {kind}: {refused or 'written'}", flush=True)


if __name__ == "__main__":
    main()
