"""What Sphinx is taught for this site, one thing a file; only `mathml` needs more than Python."""
