"""Generated C compiled for this machine and called in this process: built once, kept on disk."""
