"""The rows of a loop: decisions and tables of actions as rows, rows as events of a log, and the state they lead to."""
