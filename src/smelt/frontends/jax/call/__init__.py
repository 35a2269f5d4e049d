"""The traced call: its specs and names, and the arrays that the function or module holds."""
