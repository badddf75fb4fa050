"""The rooms of the ops: one folder each.

`case.py` and `inputs.py` of a room are what a worker imports; `op.py` is for planning and tables.
"""
