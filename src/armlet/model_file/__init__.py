"""What is kept: the model file, from the bytes on a disk up to all that a bandit knows."""
