"""What to write instead, where Python asked a traced value for what it does not have."""
