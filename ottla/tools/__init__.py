"""Floor 5: the command line; one file a verb (`topic/create.py`), which returns or prints plain data.

`main` finds the verb, `options` holds what verbs share, `output` is the only module that formats.
"""
