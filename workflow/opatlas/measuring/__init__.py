"""How long the device is taken up by one call: clean samples, a stopping rule, and what they cost.

Imported inside images: Python 3.10+, standard library, torch and numpy only.
"""
