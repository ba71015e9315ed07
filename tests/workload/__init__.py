"""Random programs against a model, through every interface: CONTRIBUTING.md, "The workload"."""
