"""Options of security: which names are such options, and those of TLS for each listener."""
