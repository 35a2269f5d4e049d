"""Re-export the atomic file writers of ``ir/files.py`` for artifacts."""

from smelt.ir.files import destination, write_atomically, write_together

__all__ = ["destination", "write_atomically", "write_together"]
