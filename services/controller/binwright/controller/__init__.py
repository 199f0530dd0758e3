"""The controller: elects a leader, and carries out what the state machine of `core` decides.

Holds the parts with side effects: `election`, the event loop of one `leadership`, the fleets that
start and end consumers, and ConsumerGroup objects on Kubernetes.
"""
