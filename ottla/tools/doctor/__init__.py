"""`ottla doctor`: what keeps clients from a broker, or a broker from starting, and the remedy for each.

One module a subject; each returns findings and changes nothing, unless it is told that it may write.
"""
