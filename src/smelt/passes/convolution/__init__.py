"""Convolutions: fold neighbouring operators into weight, bias, padding or dilation.

Passes that only move data do not belong here.
"""
