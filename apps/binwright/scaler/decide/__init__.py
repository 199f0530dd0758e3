"""Decides how many replicas an ordinary consumer group needs, and who reads what.

The inputs are how far each log reaches, what the group has committed, and how many replicas and
members it has. `sizing` sizes one scaled group, by the policy of `sla_packing` and the loads of
`lags`; `even_bins` proposes bins, `plan_publication` says which become a plan, and `mapping` is
the rule by which assignors give them to members. The policies are in any unit of load, records or
bytes.
"""
