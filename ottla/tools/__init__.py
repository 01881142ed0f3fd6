"""Layer 6: the command line, with one file per command (`topic/create.py`).

`main` finds the command, `options` defines the shared options, `output` is the only module that
formats results.
"""
