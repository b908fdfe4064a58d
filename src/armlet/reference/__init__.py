"""Every numpy oracle of the kernel, named after what it mirrors; slow, readable, and equal to the last bit."""
