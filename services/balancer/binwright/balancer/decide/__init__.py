"""Decides which brokers hold each partition's replicas, by true load, moving few bytes.

Names, by module:

- `amounts`: `BrokerId`, `Resource`, `RESOURCES`, `Amounts` (one number per resource), `UNLIMITED`.
- `cluster`: `Broker`, `Topic`, `Partition`, `CpuCosts`, `Cluster`; `Placement` (each partition's
  replicas, the preferred leader first) and `current(cluster)`.
- `loads`: `BrokerLoad`, `broker_loads(cluster, placement)`, `use(cluster, loads)`, `imbalance`.
- `bounds`: `hard_limits(cluster)`, `balance_limits(cluster, bound)`: what brokers may carry.
- `violations`: `violations(cluster, placement)`, every constraint that a placement breaks.
- `plans`: the goals `Balance` and `FewestBrokers`; `Move`, `Reason`, `Conflict`; `Plan` and
  `Infeasible`, together `Outcome`.
- `planner`: `plan(cluster, goal) -> Outcome`, the entry.
- `forecast`: `trend(samples)`, `future(cluster, lines, days)`, `forecast(cluster, lines, days)`:
  which broker exceeds what in how many days.

`binwright.balancer.exact.planner` has the entry for commands, `plan(cluster, goal, limit_s)`: exact for
small clusters where scipy is installed, the core's otherwise. May import the model and the errors.
"""
