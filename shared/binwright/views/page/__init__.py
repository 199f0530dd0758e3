"""The live page of a group: a document for browsers and the JSON that it draws.

`follower` keeps a group's view up to date from its topics, `snapshot` and `history` are what the
document asks for each second, `server` answers, and `web` is the document. Docs: how-to/page.md.
"""
