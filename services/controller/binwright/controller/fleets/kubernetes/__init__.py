"""Consumers as Kubernetes Deployments of one pod each, one for each slot."""
