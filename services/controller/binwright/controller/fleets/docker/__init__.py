"""Consumers as containers on the controller's own engine, one for each slot.

Decides how a slot's container is created, repaired, renewed and removed. It may import `core`,
`runtime` and the fleets' `common` module.
"""
