"""What tests of the service share: servers in processes, calls of the application, and loops to look at."""
