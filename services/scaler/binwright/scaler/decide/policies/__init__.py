"""Policies that ours are compared with; `scaler.decide.policy` has their interface.

`linear` is the baseline of Ezzeddine et al.; `lag_rule`, `cpu_rule` and `stabilised` are what KEDA
and the HorizontalPodAutoscaler do.
"""
