"""Logs of all kinds as columns: compacted ones as they lie, others by way of files beside; and who their arms were."""
