"""How long a live system takes to react: from the records of its control topics to tables.

Pure: records with their times come in, durations and their distributions go out. `live` starts a
system, loads it and reads its topics.
"""
