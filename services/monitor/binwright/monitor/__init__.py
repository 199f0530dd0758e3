"""The monitor service: samples partition logs and publishes write rates of topics.

`passes` runs the loop; `core.rates` computes the rates. `kafka_logs` samples every partition on its
leader, by `log_dirs` (sizes) and `batch_sizes` (bytes per record where sizes are unavailable).
`group_needs` reads which topics the controllers need. It may import `core`, `kafka` and `runtime`,
no other service.
"""
