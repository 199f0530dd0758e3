"""What a table is: its columns, the schemas that they follow from, and what a commit of it has.

Decides which tables a topic has by the settings, which columns schemas and values have, and what a
stamp holds; `ports` is what the services need of the lake and of the place of staged files.
"""
