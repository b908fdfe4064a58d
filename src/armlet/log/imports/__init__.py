"""Logs of other origin, as events: Vowpal Wabbit's dsjson, the Open Bandit Pipeline's dictionaries, tables, datasets.

Nothing replays them, since no start model is known; everything else that reads a log reads them.
"""
