"""Decides how a new placement of replicas is carried out on a running cluster.

- `steps`: what one partition still needs.
- `safety`: what is refused before anything moves, and what makes a run pause.
- `throttles`: the limits on copying that brokers and topics have, and how ours are recognised.
- `latency`: when producers wait longer than before.
- `machine`: what starts now. Everything follows from the plan and from what the cluster reports,
  so a run that was killed continues where it was.

May import the model, the errors and the ports.
"""
