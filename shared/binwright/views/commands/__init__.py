"""Commands about running groups: status, approve, page; and the live page of a terminal."""
