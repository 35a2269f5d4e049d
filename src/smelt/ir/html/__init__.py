"""HTML for notebooks: a model as a picture or a table, and tables for what else smelt returns.

Text of a model is data: all of it goes through ``escaped``, and nothing here writes scripts,
links or ids.
"""
