"""`ottla group …`: list, describe, delete consumer groups and move their offsets."""
