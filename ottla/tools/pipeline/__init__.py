"""`ottla pipeline`: pipelines as YAML files, checked, explained and run."""
