"""The lessons by subject; each is a scenario between a question and an explanation."""
