"""ConsumerGroup objects: one controller process for all groups that are declared in Kubernetes.

Decides which objects are led, reads each object's spec as settings, and writes status, Events and
approvals back.
"""
