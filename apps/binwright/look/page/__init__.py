"""The live page of a group: a document for browsers and the JSON that it draws.

`live_group` keeps the group's view through outages, `snapshot` is what the document draws each
second, `server` serves it, and `web` is the document. Docs: how-to/page.md.
"""
