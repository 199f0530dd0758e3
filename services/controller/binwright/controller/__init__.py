"""The controller: leads a group while it is elected, and carries out what its machine decides.

`decide` has the machine. Around it are the event loop of one `leadership`, the fleets that start
and end consumers, and ConsumerGroup objects on Kubernetes.
"""
