"""HTML for notebooks: a model as a picture or a table, and tables for other results of smelt.

Text of a model is data: all of it goes through ``escaped``, and no code here writes scripts, links
or ids.
"""
