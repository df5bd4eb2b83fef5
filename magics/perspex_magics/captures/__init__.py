"""Whether what a program captured is still what it was, and what to say if not."""
