"""What happened, as tables: read from files."""
