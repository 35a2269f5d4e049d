"""Releases of libraries that tests run with, where what is right depends on them."""

from __future__ import annotations

import onnxruntime

ONNXRUNTIME = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
