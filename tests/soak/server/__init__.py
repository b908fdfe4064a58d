"""Soaks of running servers: processes that are killed, stopped and cut off while clients talk HTTP to them."""
