"""Examines a group's surroundings and its tables: the commands that run no service.

`audit` compares the offsets of topics with the rows of tables, `values` what is in them; `doctor`
examines settings, Kafka, Spark, the lake and the registry; `init` writes a first settings file.
"""
