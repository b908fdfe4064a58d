"""Tables, logs and lives of bandits whose arms have features."""
