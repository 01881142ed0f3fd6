"""Options of security: which names are such options, and the TLS options for each listener."""
