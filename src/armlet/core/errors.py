"""Errors that no built-in exception describes well."""


class ArmletError(Exception):
    """Base of every error that is Armlet's own."""


class DecisionError(ArmletError):
    """A Decision was used in a way that its past forbids, such as learning from it twice."""


class ModelFileError(ArmletError):
    """A model file is damaged, truncated, tampered with, or newer than this version reads."""


class MergeError(ArmletError):
    """Two bandits whose sums do not mean the same thing cannot be added."""


class BusyError(ArmletError):
    """A bandit is to be changed from inside one of its own calls, by its policy or by a signal handler."""


class PolicyError(ArmletError):
    """A policy answered what no policy may: an arm that cannot be played, or probabilities that are none."""


class TableError(ArmletError):
    """A table's producer failed while its rows were being read."""
