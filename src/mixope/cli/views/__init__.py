"""Records as something to read on a terminal: each file turns one kind of record into a rich renderable."""
