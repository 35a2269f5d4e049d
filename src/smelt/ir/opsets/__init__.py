"""Opsets and versions: raise and lower a model, and the forms of operators in older opsets."""
