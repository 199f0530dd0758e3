"""Scaling policies on simulated consumer groups: the tables and figures of Ezzeddine et al. again.

Ezzeddine, Baude, Huet, CLOSER 2024. `simulator` is one group under one policy, `cases` what is run,
`tables` and `figures` what is shown. May import the core.
"""
