"""Azure Personalizer's routes for rank, activate and reward, so that its clients work unchanged."""
