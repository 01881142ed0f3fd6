"""Layer 5: the command line; one file per verb (`topic/create.py`), which prints plain data.

`main` finds the verb, `options` defines shared options, `output` is the only module that formats.
"""
