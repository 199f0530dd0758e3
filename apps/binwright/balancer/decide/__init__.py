"""Decides which brokers hold each partition's replicas, and how they get there.

- `model`: a cluster as a value; `loads`: what brokers carry and may carry; `constraints`: what a
  placement breaks.
- `planner.plan(cluster, goal, solver)`: a `plans.Plan`, or why there is none. `search` solves
  clusters of any size, `exact` small ones.
- `forecast`, `thresholds`, `proposals`: when a plan is proposed, and what becomes of it.
- `reassignment`, `safety`, `throttles`: how a plan is carried out. Everything follows from the plan
  and from what the cluster reports, so a run that was killed continues where it was.
"""
