"""What stands between brackets: parsed, then read or written."""
