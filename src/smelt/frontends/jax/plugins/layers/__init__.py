"""Library layers that are faster to trace as one equation, and their lowerings.

Each file replaces a library function that took more than a seventh of a conversion (each was
measured alone). JAX traces the function as usual if the library has changed its signature.
"""
