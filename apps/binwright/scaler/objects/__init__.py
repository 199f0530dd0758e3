"""ScaledGroup objects: workloads of Kubernetes that run ordinary consumer groups.

Reads each object's spec, scales its Deployment or StatefulSet by the `scale` subresource, and
writes status and Events back. One informer of each kind serves all objects.
"""
