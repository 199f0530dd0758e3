"""Fleets start and end consumers; each implements the port `Fleet`.

`process` runs child processes, `kubernetes` Deployments; `fixed` uses consumers that are started by
other means. A fleet decides how a slot runs, never which slots do.
"""
