"""What to write instead where Python needed the value of a traced array."""
