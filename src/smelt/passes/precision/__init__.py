"""Element types changed on request.

Nothing here runs by default.
"""
