"""One spelling of what may be written in several ways, so that later rules need one pattern.

A pass here makes nothing smaller by itself.
"""
