"""Sizes that are open in Python code: functions that need numbers, comparisons, their cases."""
