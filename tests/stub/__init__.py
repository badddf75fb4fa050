"""A backend for tests: needs no framework, and a file says how each case misbehaves.

It is no part of the package. Tests copy this folder to `opatlas/backends/stub` of a copy of the tree.
"""
