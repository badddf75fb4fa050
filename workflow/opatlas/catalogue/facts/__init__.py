"""The kinds of facts a model file may hold, one file each.

A kind's file is named by its key in model files and has `read(section)`, which turns one record of
the list under that key into a typed value.
"""
