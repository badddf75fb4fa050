"""The rooms of the ops: one folder each.

`case.py` and `inputs.py` of a room are what a worker imports; `op.py` is for planning and tables. Modules
beside the rooms hold what several rooms share; a room says itself what it takes from them.
"""
