"""`ottla doctor`: find why clients cannot reach a broker, or why a broker cannot start.

One module per subject. Each returns findings with remedies, and changes nothing unless writing is
allowed.
"""
