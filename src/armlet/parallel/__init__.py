"""For whatever runs long: where tasks run, and how far they are."""
