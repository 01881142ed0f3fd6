"""`ottla pipeline`: check, explain and run pipelines written as YAML files."""
