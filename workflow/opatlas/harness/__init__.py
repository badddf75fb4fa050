"""The measuring harness: a supervisor, its worker, and what they leave behind.

Standard library only, Python 3.10 and later; only the worker imports a backend. The protocol, the failure
classes and the files of an attempt are written down in docs/harness.md.
"""
