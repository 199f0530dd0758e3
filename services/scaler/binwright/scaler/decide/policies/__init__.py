"""Decides how many replicas a consumer group needs, and who reads what, from rates and lags.

For groups of ordinary consumers, in any unit of load: records or bytes. `policy` has the common
interface; `sla_packing` is our own policy, `bin_pack` has Algorithms 1 and 2 of Ezzeddine et al.,
`linear` their baseline, `lag_rule`, `cpu_rule` and `stabilised` what KEDA and the
HorizontalPodAutoscaler do. May import the model, the errors and the packing.
"""
