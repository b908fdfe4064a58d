"""What several policies are made of. Nothing in here is a policy: those are the files one folder up."""
