"""Where time goes: each phase says when it begins and ends, to whoever records it.

::

    with recording() as recorder:
        model = smelt.load("model.onnx")
    for depth, each in recorder.walk():
        print("  " * depth, each.name, each.seconds)

Nobody records by default, and then a span costs one look-up.
"""

from __future__ import annotations

from smelt.spans.record import Recorder, Span, recording, span

__all__ = ["Recorder", "Span", "recording", "span"]
