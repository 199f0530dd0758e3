"""Commands about running groups: status, approve, page, top; and the live page of a terminal."""
