"""The experiments of the paper, one file or folder each."""
