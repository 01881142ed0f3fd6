"""Values in a schema registry's wire format as JSON texts, with the schemas of the registry.

For readers that know no schema beforehand. Serdes of known schemas are in `client.serdes`.
"""
