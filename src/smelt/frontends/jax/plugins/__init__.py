"""Lowerings: a folder a subject, a module a family of primitives; all are found, none is listed."""
