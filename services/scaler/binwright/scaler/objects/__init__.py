"""ScaledGroup objects: workloads of Kubernetes that run ordinary consumer groups.

Reads each object's spec, scales its Deployment or StatefulSet by the `scale` subresource, and
writes status and Events back. One informer of each kind serves all objects. It may import
`controller.kubernetes` and the parts of `group_objects` that write a status.
"""
