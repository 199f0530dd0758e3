"""The Kubernetes API: calls with deadlines, informers of watched objects, Events.

Shared by the fleet of Deployments and the ConsumerGroup objects. It may import `core`, `runtime`
and, from the fleet, only the names and labels of Deployments.
"""
