"""Passes over Loop, Scan, If and sequences."""
