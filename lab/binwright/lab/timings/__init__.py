"""How long a live system takes to react: from the records of its control topics to tables.

Pure: records with their times come in, durations and their distributions go out. What starts a
system, loads it and reads its topics is in `live`.
"""
