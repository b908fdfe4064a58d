"""What the tests of stores share: a store with a past, and tools for its file."""
