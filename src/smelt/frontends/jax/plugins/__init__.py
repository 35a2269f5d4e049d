"""Lowerings: one folder per subject, one module per family of primitives; all are found by
import."""
