"""What the controller needs of Kubernetes: calls, mirrors of objects, Events, group objects."""
