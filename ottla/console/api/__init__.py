"""The REST API of the console, its OpenAPI document, and an MCP server over the same table.

`calls/` declares the operations: each is a function of the model with a method, a path and a role.
Parameters, schemas and descriptions are read from the function's signature and docstring.
"""
