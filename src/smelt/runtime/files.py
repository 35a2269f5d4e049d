"""The atomic writer of ``ir/files.py`` under the name that artifacts use."""

from smelt.ir.files import write_atomically

__all__ = ["write_atomically"]
