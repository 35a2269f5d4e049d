"""Timing of phases and passes, for code that wants to record it.

::

    with recording() as recorder:
        model = smelt.load("model.onnx")
    for depth, recorded in recorder.walk():
        print("  " * depth, recorded.name, recorded.seconds)

By default nothing is recorded, and a span costs one look-up.
"""

from __future__ import annotations

from smelt.spans.record import Recorder, Span, recording, span

__all__ = ["Recorder", "Span", "recording", "span"]
