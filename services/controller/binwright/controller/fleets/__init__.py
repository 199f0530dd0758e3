"""Fleets start and end consumers; each implements the port `Fleet` (`protocol.ports`).

`kubernetes` runs Deployments, `fixed` uses consumers that are started by other means; `process`,
which the scaler uses too, is in `binwright.fleets`. A fleet decides how a slot runs, never which
slots do.
"""
