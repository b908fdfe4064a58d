"""What would have happened: the value of policies that did not decide, from the log of one that did."""
