"""A notebook: the kernel that runs its cells, and the page that shows what they return."""
