"""The controller: elects a leader, and carries out what its state machine decides.

`decide` is the state machine. Beside it are the parts with side effects: the event loop of one
`leadership`, the `fleets` that start and end consumers, and ConsumerGroup objects on Kubernetes
(`group_objects`).
"""
