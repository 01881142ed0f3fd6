"""Shell integration of Ottla: completion."""
