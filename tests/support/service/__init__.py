"""What the tests of the service share: calls without sockets, servers that run, and loops for pages."""
