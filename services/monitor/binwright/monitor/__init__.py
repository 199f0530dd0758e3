"""The monitor service: samples partition logs and publishes write rates of topics.

`passes` runs the loop, `sampling` asks the brokers, and `decide` computes the rates.
`group_needs` reads which topics the controllers need.
"""
