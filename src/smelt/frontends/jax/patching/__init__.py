"""Functions of JAX and its libraries that smelt replaces while it traces."""
