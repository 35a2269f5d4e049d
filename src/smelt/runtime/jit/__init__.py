"""Compile generated C for this machine, cache it on disk, and call it in this process."""
