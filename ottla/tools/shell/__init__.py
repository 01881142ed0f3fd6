"""What belongs to the shell that Ottla is called from: completion."""
