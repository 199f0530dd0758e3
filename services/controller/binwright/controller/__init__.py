"""The controller: elects a leader, and carries out what the state machine of `core` decides.

Holds the parts with side effects: the election, the leader's event loop, the fleets that start and
end consumers, and ConsumerGroup objects on Kubernetes. It may import `core`, `kafka`, `runtime` and
`lab.packings`; it knows nothing of the other services.
"""
