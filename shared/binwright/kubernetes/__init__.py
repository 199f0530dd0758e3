"""The Kubernetes API: calls with deadlines, informers of watched objects, Events, statuses."""
