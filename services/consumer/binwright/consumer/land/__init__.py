"""Executes the landing decisions of `decide.land`: one writer per table.

`decide.land` decides what a table's writer requests; this package sends the requests to Spark
(through the port `Lake`), Kafka and the staging location, and returns their outcomes. `writers`
starts and stops the tables that this consumer writes, `table_writer` runs one of them.
"""
