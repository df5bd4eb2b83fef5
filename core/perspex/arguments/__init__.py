"""What public functions say of their arguments, and check, before they bind an operation."""
