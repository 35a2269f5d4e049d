"""Speed and size of WebAssembly beside onnxruntime-web in Node, over those of ``bench.networks``.

    npm install --prefix /tmp/web onnxruntime-web
    python -m bench.web --onnxruntime /tmp/web/node_modules/onnxruntime-web
                        [--models a,b] [--seconds 2] [--option key=value]

Compiles each model and runs ``web.mjs``, which prints the table.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import onnx

import smelt
from bench.more_networks import MORE
from bench.networks import NETWORKS


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--onnxruntime", required=True)
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--option", action="append", default=[])
    given = parser.parse_args()
    known = {**NETWORKS, **MORE}
    options = dict(each.split("=", 1) for each in given.option)
    with tempfile.TemporaryDirectory(prefix="smelt-web-") as name:
        folder = Path(name)
        for model_name in given.models.replace("more", ",".join(MORE)).split(","):
            model = known[model_name]()
            artifact = smelt.compile(model, target="wasm", plain=False, **options)
            artifact.save(folder / model_name)
            onnx.save(model, folder / f"{model_name}.onnx")
            facts = {"weights_bytes": artifact.plan.facts["weights_bytes"]}
            (folder / f"{model_name}.json").write_text(json.dumps(facts))
        script = Path(__file__).with_suffix(".mjs")
        command = ["node", str(script), str(folder), given.onnxruntime, given.seconds]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
