"""Ordinary consumer groups: how many replicas each has, and who reads what.

`python -m binwright.scaler` sizes workloads: `passes` looks all groups up every few seconds,
`decide` says what each needs, and an order goes to its workload: of Kubernetes (`objects`), of this
machine (`local`), or of KEDA (`keda`). `assigning` publishes plans of who reads what, which the
assignors inside the groups' members follow (`assignor`; that for Java is in `apps/java`).
"""
