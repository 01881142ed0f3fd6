"""The connection of a command to its cluster: options of a file, missing rights, completion."""
