"""Pages of loops, rendered on the server: what a loop earns, explores and lacks, in words first."""
