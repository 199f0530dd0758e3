"""Consumers as Kubernetes Deployments of one pod each, one for each slot.

Decides how a slot's Deployment is created, repaired, renewed and deleted. It may import `core`,
`runtime`, `controller.kubernetes` and the fleets' `common` module.
"""
