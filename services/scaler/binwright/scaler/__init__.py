"""The scaler: sizes the workloads of ordinary consumer groups, by rate and lag.

One pass over all groups every few seconds: committed offsets and ends of logs by few requests, a
decision of `core.scaled_groups` for each, and orders to workloads. `passes` has the loop, `ends`
the ends of logs; `objects` has ScaledGroup objects and Deployments, `local` processes,
`keda` an external scaler for KEDA. It may import `core`, `kafka`, `runtime` and, from
the controller, `kubernetes`, `fleets`, `measurements` and the election.
"""
