"""Layers of JAX, flax and equinox that are traced as one equation, and their lowerings.

Tracing such a layer by its own code took more than a seventh of a conversion. JAX traces the code
as usual if a release of the library has changed the function's signature.
"""
