"""Decides who reads what in an ordinary consumer group, and whether that is worth a rebalance.

`members` has what is known of a group's members, `mapping` the rule by which an assignor gives the
bins of a plan to them, `matching` its search for the fewest moves; the assignor for Java has the
same, and `docs/design/assignor.md` describes it. `even` and `policies` make bins, `publication`
decides which are published. May import the protocol, the model, the errors, packing and scaling.
"""
