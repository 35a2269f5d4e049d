"""Library layers that are faster to trace as one equation, and their lowerings.

Each replaces a library function that took more than a seventh of a conversion (measured one by
one), and is skipped if the library has changed.
"""
