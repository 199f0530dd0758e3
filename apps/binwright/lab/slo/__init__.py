"""Scaling policies on simulated consumer groups: the tables and figures of Ezzeddine et al. again.

Ezzeddine, Baude, Huet, CLOSER 2024. `workloads` and `policies` are what is compared, `cases` the
tables, `results` what came of them; `published` has the paper's values.
"""
