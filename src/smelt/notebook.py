"""Show models in IPython and Jupyter as a picture or table instead of pages of text.

Classes of smelt define ``_repr_html_``. A model is an ``onnx_ir.Model``, so a formatter is
registered: by ``%load_ext smelt``, or at ``import smelt`` in a running shell. This module does not
import IPython.
"""

from __future__ import annotations

import sys
from typing import Any

FORMAT = "text/html"
MODEL = ("onnx_ir", "Model")
"""The module and the name of the class, which need not be imported yet."""


def load_ipython_extension(shell: Any) -> None:
    """Show models as HTML in ``shell``, an ``InteractiveShell``; a user's own formatter is kept."""
    formatter = shell.display_formatter.formatters[FORMAT]
    if MODEL not in formatter.deferred_printers and not _is_shown(formatter):
        formatter.for_type_by_name(*MODEL, _html)


def unload_ipython_extension(shell: Any) -> None:
    """Restore IPython's own display of models."""
    formatter = shell.display_formatter.formatters[FORMAT]
    if formatter.deferred_printers.get(MODEL) is _html:
        formatter.deferred_printers.pop(MODEL)
    loaded = sys.modules.get(MODEL[0])
    if loaded is not None and formatter.type_printers.get(loaded.Model) is _html:
        formatter.type_printers.pop(loaded.Model)


def show_models_in_running_shell() -> None:
    """Load the extension into the shell of this process, if there is one."""
    found = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if found is not None and getattr(found, "display_formatter", None) is not None:
        load_ipython_extension(found)


def _is_shown(formatter: Any) -> bool:
    """True if the formatter has a function for models already."""
    loaded = sys.modules.get(MODEL[0])
    return loaded is not None and loaded.Model in formatter.type_printers


def _html(model: Any) -> str:
    """Return ``model`` as HTML; the import waits until a model is shown."""
    from smelt.ir.html.model import model_html

    return model_html(model)
