"""The atomic writers of ``ir/files.py`` under the name that artifacts use."""

from smelt.ir.files import destination, write_atomically, write_together

__all__ = ["destination", "write_atomically", "write_together"]
