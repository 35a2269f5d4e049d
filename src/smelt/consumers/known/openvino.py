"""OpenVINO's reader of ONNX files, with its CPU plug-in."""

from smelt.consumers.consumer import Consumer

openvino = Consumer(
    "openvino",
    "OpenVINO, its reader of ONNX files and its CPU plug-in",
    "OpenVINO 2026.4: ONNX's node tests, read, compiled and run",
    opsets=(7, 23),
    without=("sum-residuals",),
)
