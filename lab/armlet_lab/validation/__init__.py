"""Validation: whether intervals cover, whether gates err, and what others have printed."""
