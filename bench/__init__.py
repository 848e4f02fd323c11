"""Measurements. Each module here measures one thing beside a reference in the same run.

To add one: a module that runs as `python -m bench.NAME`; a name that begins with an underscore is a
shared helper. `python -m bench` runs all, each in a process of its own, so that imports and peak memory of
one do not weigh on the next.
"""
