"""Random programs against a model, through every door: CONTRIBUTING.md, "The workload"."""
