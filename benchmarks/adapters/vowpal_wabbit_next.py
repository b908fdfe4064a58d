"""vowpal-wabbit-next: the same learner behind newer bindings, features as text or pushed from a numpy array."""

import random

import numpy as np
import vowpal_wabbit_next as vw

from adapters.base import Policy
from stream import Contexts, Rewards


class _Workspace(Policy):
    def __init__(self, dim: int, n_arms: int) -> None:
        self.vw = vw.Workspace([f"--cb_explore={n_arms}", "--epsilon=0.05", "--random_seed=1"])
        self.parse = vw.TextFormatParser(self.vw).parse_line
        self.features = "|x " + " ".join(f"f{i}:%.7g" for i in range(dim))
        self.indices = np.array(self.parse(self.features % ((1.0,) * dim))["x"].indices, dtype=np.uint64)
        self.choices = random.Random(1).choices

    def state_bytes(self) -> int:
        return len(self.vw.serialize())


class _Text(_Workspace):
    """One parsed line, predicted, labelled and learned."""

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, learn, parse = self.vw.predict_one, self.vw.learn_one, self.parse
        choices, features = self.choices, self.features
        for x, reward in zip(contexts, rewards, strict=True):
            example = parse(features % tuple(x.tolist()))
            pairs = predict(example)
            arm, probability = choices(pairs, [weight for _, weight in pairs])[0]
            example.set_label(vw.CBLabel(label=(arm + 1, 1.0 - reward[arm], probability)))
            learn(example)


class _Pushed(_Workspace):
    """An Example filled from the array, without text; the library holds float32."""

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, learn, indices = self.vw.predict_one, self.vw.learn_one, self.indices
        choices, unlabelled = self.choices, vw.CBLabel()
        for x, reward in zip(contexts, rewards, strict=True):
            example = vw.Example()
            example["x"].push_many_features(indices, x.astype(np.float32))
            example.set_label(unlabelled)
            pairs = predict(example)
            arm, probability = choices(pairs, [weight for _, weight in pairs])[0]
            example.set_label(vw.CBLabel(label=(arm + 1, 1.0 - reward[arm], probability)))
            learn(example)


def make(variant: str, dim: int, n_arms: int) -> Policy:
    return {"text": _Text, "numpy": _Pushed}[variant](dim, n_arms)
