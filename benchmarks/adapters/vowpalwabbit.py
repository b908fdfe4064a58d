"""Vowpal Wabbit: one SGD weight vector per action, features as text or as an Example.

`--cb_explore` takes a fixed list of actions and one line of features; `--cb_explore_adf` takes a line for the
shared context and one for each action, crossed with -q. The library returns the probabilities and leaves the
drawing of the action to the caller.
"""

import random
import tempfile
from pathlib import Path

import vowpalwabbit

from adapters.base import Policy
from stream import Contexts, Rewards

ADF_OPTIONS = {
    "adf-epsilon": "--epsilon 0.05",
    "adf-squarecb": "--squarecb",
    "adf-regcb": "--regcbopt --mellowness 0.001",  # as in the bake-off
}


class _Workspace(Policy):
    def __init__(self, options: str, dim: int, n_arms: int) -> None:
        self.vw = vowpalwabbit.Workspace(f"{options} --quiet --random_seed 1")
        self.arms = range(n_arms)
        # one %-format for the whole row is the fastest way that Python has to write it as text; names that are
        # bare numbers would be hashed to neighbours, which are then shared between the actions
        self.features = "|x " + " ".join(f"f{i}:%.7g" for i in range(dim))
        self.choices = random.Random(1).choices

    def state_bytes(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.vw")
            self.vw.save(str(path))
            return path.stat().st_size


class _Text(_Workspace):
    """A line of text to predict, and the same line with its label to learn."""

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, learn = self.vw.predict, self.vw.learn
        features, arms, choices = self.features, self.arms, self.choices
        for x, reward in zip(contexts, rewards, strict=True):
            line = features % tuple(x.tolist())
            pmf = predict(line)
            arm = choices(arms, pmf)[0]
            learn(f"{arm + 1}:{1.0 - reward[arm]}:{pmf[arm]} {line}")


class _Example(_Workspace):
    """One parsed Example, predicted, labelled and learned: the text is parsed once.

    An example set up without a label is marked as one for tests and never learned, so it is set up again.
    """

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        vw, arms, choices, features = self.vw, self.arms, self.choices, self.features
        for x, reward in zip(contexts, rewards, strict=True):
            example = vw.example(features % tuple(x.tolist()))
            pmf = vw.predict(example)
            arm = choices(arms, pmf)[0]
            example.set_label_string(f"{arm + 1}:{1.0 - reward[arm]}:{pmf[arm]}")
            example.unsetup_example()
            example.setup_example()
            vw.learn(example)
            vw.finish_example(example)


class _ActionFeatures(_Workspace):
    """The adf format: a shared line and one line for each action."""

    def __init__(self, options: str, dim: int, n_arms: int) -> None:
        super().__init__(f"--cb_explore_adf {options} -q xa", dim, n_arms)
        self.actions = [f"|a {arm}" for arm in self.arms]

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, learn = self.vw.predict, self.vw.learn
        features, arms, choices, actions = self.features, self.arms, self.choices, self.actions
        for x, reward in zip(contexts, rewards, strict=True):
            shared = "shared " + features % tuple(x.tolist())
            pmf = predict([shared, *actions])
            arm = choices(arms, pmf)[0]
            label = f"0:{1.0 - reward[arm]}:{pmf[arm]} {actions[arm]}"
            learn([shared, *actions[:arm], label, *actions[arm + 1 :]])


def make(variant: str, dim: int, n_arms: int) -> Policy:
    if variant in ADF_OPTIONS:
        return _ActionFeatures(ADF_OPTIONS[variant], dim, n_arms)
    return {"text": _Text, "example": _Example}[variant](f"--cb_explore {n_arms} --epsilon 0.05", dim, n_arms)
