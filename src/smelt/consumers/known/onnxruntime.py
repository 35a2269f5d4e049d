"""ONNX Runtime's CPU provider, by version."""

from dataclasses import replace

from smelt.consumers.consumer import Consumer, Version

OPSETS: dict[Version, tuple[int, int]] = {
    (1, 16): (19, 9),
    (1, 17): (20, 9),
    (1, 18): (21, 10),
    (1, 21): (22, 10),
    (1, 23): (23, 11),
    (1, 24): (25, 13),
    (1, 25): (26, 13),
}
"""The highest ONNX opset and file format version that each release opens, measured."""


def at(version: Version) -> Consumer:
    """Return ONNX Runtime in ``version``, with the limits of the newest listed release up to it.

    A version before all listed ones has the limits of the oldest.
    """
    releases = [release for release in OPSETS if release <= version]
    opset, ir_version = OPSETS[max(releases, default=min(OPSETS))]
    name = f"onnxruntime>={'.'.join(map(str, version))}"
    return replace(onnxruntime, name=name, opsets=(7, opset), ir_version=ir_version)


onnxruntime = Consumer(
    "onnxruntime",
    "ONNX Runtime's CPU provider",
    "one model an opset, opened in the wheels of each release",
    opsets=(7, 23),
    is_onnx_runtime=True,
    at=at,
)
