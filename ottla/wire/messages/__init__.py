"""One file per API: its request and response in every version.

`ottla.wire.api_keys` finds the classes by the names of the keys.
"""
