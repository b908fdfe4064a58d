"""What a user sees of the library: names that a type checker knows, `dir`, signatures, and who is no policy."""

from __future__ import annotations

import importlib
import inspect
import io
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix  # type: ignore[import-untyped]

import armlet
from armlet import Bandit, LinUCB, Uniform
from armlet.inputs.columns import WIDEST, label_array
from armlet.policies import POLICIES
from armlet.types import Arm
from support.policies import SETTINGS

ROOT = Path(__file__).parents[2]


def findings(snippet: str, folder: Path) -> list[str]:
    """Run mypy --strict over a program of a user; give each line that has a finding, with its message.

    With our own settings, which are strict too, so that what `make lint` knows of the library is not found out again.
    """
    program = folder / "snippet.py"
    program.write_text(f"{snippet}# {folder}\n")  # or it repeats what it said of the same text elsewhere
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == ""
    return [line.removeprefix(f"{folder}/") for line in done.stdout.splitlines()]


USER_PROGRAM = """\
import armlet
import armlet.policies

armlet.LinUBC(alpha=1)
armlet.LinUCB(alhpa=1)
armlet.policies.LinUBC()
armlet.Bandit(["a"], 1, policy=armlet.LinUCB).decide([1.0])
armlet.Bandit(["a"], 1, policy=armlet.LinUCB()).decied([1.0])
armlet.load("model").forget()
"""


def test_a_type_checker_sees_every_policy_as_itself_and_finds_misspelt_names(tmp_path: Path) -> None:
    policies = "".join(f"reveal_type(armlet.{name})\nreveal_type(armlet.policies.{name})\n" for name in POLICIES)
    known = "armlet.advise\narmlet.theory\narmlet.environments\narmlet.testing\n"
    lines = findings(USER_PROGRAM + policies + known, tmp_path)
    errors = [line for line in lines if ": error: " in line]
    assert [re.match(r"snippet.py:(\d+): error: ", line)[1] for line in errors] == list("456789")  # type: ignore[index]
    assert 'Module has no attribute "LinUBC"' in errors[0]
    assert 'Unexpected keyword argument "alhpa" for "LinUCB"' in errors[1]
    revealed = [line for line in lines if ": note: Revealed type" in line]
    assert len(revealed) == 2 * len(POLICIES) > 30
    for line, name in zip(revealed, [name for name in POLICIES for _ in range(2)], strict=True):
        assert re.search(rf"-> armlet\.policies\.[\w.]+\.{name}\"", line), line


def test_dir_shows_the_library() -> None:
    shown = dir(armlet)
    assert shown == sorted(set(shown))
    assert set(POLICIES) - set(shown) == {"AutoAlgorithm1", "Oracle", "ScheduledEpsilonGreedy"}
    assert {"Bandit", "load", "advise", "theory", "environments", "testing", "policies"} < set(shown)
    assert set(vars(armlet)["__all__"]) < set(shown)
    assert set(POLICIES) < set(dir(armlet.policies))
    for name in shown:
        assert getattr(armlet, name) is not None


@pytest.mark.parametrize("module", [armlet, armlet.policies, armlet.stores], ids=lambda module: str(module.__name__))
def test_dir_shows_nothing_that_a_module_imports_for_itself(module: Any) -> None:
    others = [name for name in dir(module) if name[0] != "_" and name not in module.__all__]
    assert others == (["find_policy"] if module is armlet.policies else [])


def test_the_face_is_small() -> None:
    """What a user has to learn: at most 30 names of a bandit, besides those of budgets and times; 46 of the library."""
    methods = [name for name in dir(Bandit) if name[0] != "_" and name not in ("budget", "bill", "set_time")]
    assert len(methods) <= 30, methods
    names = [name for name in dir(armlet) if name[0] != "_"]
    assert len(names) <= 46, names


def test_only_the_base_of_all_errors_is_at_the_top() -> None:
    kinds = [
        value
        for value in vars(armlet.errors).values()
        if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning)
    ]
    assert len(kinds) > 10
    assert all(issubclass(kind, armlet.ArmletError | Warning) for kind in kinds)
    assert [name for name in dir(armlet) if name.endswith("Error")] == ["ArmletError"]


def test_all_policies_are_listed_once_for_every_reader() -> None:
    """The registry, what `import *` gives, and what a checker sees."""
    assert set(POLICIES) < set(vars(armlet.policies)["__all__"])
    for module in (armlet, armlet.policies):
        names = vars(module)["__all__"]
        assert len(set(names)) == len(names)


def test_importing_armlet_reads_no_policy_that_is_not_asked_for() -> None:
    program = "import sys, armlet; print(*sorted(name for name in sys.modules if name.startswith('armlet.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("armlet.policies.")} == {
        "armlet.policies.base",
        "armlet.policies.discounts",
        "armlet.policies.state",
    }
    assert not loaded & {"armlet.advice", "armlet.theory", "armlet.environments", "armlet.testing", "armlet.model_file"}


METHODS = [name for name in dir(Bandit) if name[0] != "_" and callable(inspect.getattr_static(Bandit, name))]


@pytest.mark.parametrize("name", METHODS)
def test_every_public_method_has_a_signature(name: str) -> None:
    assert next(iter(inspect.signature(getattr(Bandit, name)).parameters)) == "self"


def test_signatures_say_how_correct_and_forget_are_called() -> None:
    assert str(inspect.signature(Bandit.correct)) == "(self, /, decision, old_reward, new_reward)"
    assert str(inspect.signature(Bandit.forget)) == "(self, /, decision, reward)"
    bandit = Bandit(["a", "b"], 1, policy=Uniform(), seed=1)
    decision = bandit.decide([1.0])
    bandit.learn(decision, 1.0)
    bandit.correct(decision, old_reward=1.0, new_reward=0.5)
    bandit.forget(decision=decision, reward=0.5)
    assert bandit.state.n.sum() == 0.0
    with pytest.raises(TypeError, match=r"correct\(\) is missing 'new_reward'; call correct"):
        bandit.correct(decision, 1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"forget\(\) got an unexpected keyword 'amount', which is .*; call forget"):
        bandit.forget(decision, amount=1.0)  # type: ignore[call-arg]


def test_parts_of_a_bandit_hold_the_rest_of_its_face() -> None:
    """What is not a method of its own: asked for on a part of the bandit, or by a keyword."""
    bandit = Bandit(["a", "b", "c"], features=["x"], policy=Uniform(), objective="min", reward_range=(0, 1), seed=1)
    bandit.retire_arm("b")
    arms = bandit.arms
    assert (arms, arms.retired, list(arms.subset(["c", "a"]))) == (["a", "b", "c"], ["b"], ["c", "a"])
    assert type(pickle.loads(pickle.dumps(arms))) is list
    found = bandit.settings
    assert (found.dim, found.features, found.encoder, found.objective) == (1, ("x",), None, "min")
    assert (found.normalize, found.units, found.reward_range, found.policy) == (None, "as given", (0.0, 1.0), Uniform())
    with pytest.raises(AttributeError):
        found.dim = 2  # type: ignore[misc]
    bandit.replace(seed="random")
    assert bandit.seed != 1
    bandit.replace(t=7)
    assert bandit.t == 7
    for given in ({}, {"seed": 3, "t": 9}, {"policy": Uniform(), "seed": 3}):
        with pytest.raises(TypeError, match="give one of policy, seed, t, features, encoder, reward_range"):
            bandit.replace(**given)
    assert bandit.t == 7


def test_a_table_of_decisions_is_complete_and_alone() -> None:
    bandit = Bandit(["a", "b"], 1, policy=Uniform(), seed=1)
    row = bandit.copy().decide([1.0]).to_dict()
    table = {name: [row[name]] for name in ("t", "x", "arm", "propensity", "explored")} | {"reward": [1.0]}
    with pytest.raises(TypeError, match="rewards is missing; give X, arms and rewards, or a table of decisions alone"):
        bandit.partial_fit(table, ["a"])
    for given in ({"explored": True}, {"weights": [1.0]}, {"steps": 0}, {"design": "fixed"}):
        with pytest.raises(ValueError, match=f"{next(iter(given))} is .*the columns of a table of decisions say that"):
            bandit.partial_fit(table, **given)
    assert bandit.state.n.sum() == 0.0
    bandit.partial_fit(table)
    bandit.fit(table)
    assert (bandit.t, bandit.state.n.sum()) == (0, 1.0)


# ---- who is no policy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("linucb", r"policy is 'linucb' \(str\); give an instance: armlet\.LinUCB\(\)$"),
        ("Lin-UCB", r"armlet\.LinUCB\(\)$"),
        ("thompson", r"armlet\.ThompsonSampling\(\)$"),
        ("contextual_epsilon_greedy", r"armlet\.ContextualEpsilonGreedy\(p=\.\.\.\)$"),
        ("qqq", r"armlet\.OccasionalOptimism\(\)$"),
        (LinUCB, "policy is the class LinUCB; pass an instance of it, with its settings"),
        (0.1, r"policy is 0\.1 \(float\), which lacks learns_from, .*, update; give a policy such as armlet"),
        (print, "which lacks learns_from, memory, rewards, check, init"),
        (np.zeros(3), r"\(ndarray\), which lacks"),
    ],
)
def test_what_is_no_policy_is_refused_by_name(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Bandit(["a", "b"], 2, policy=given)
    with pytest.raises(TypeError, match=message):
        armlet.load(io.BytesIO(), policy=given)


def test_an_object_that_lacks_one_method_is_told_which() -> None:
    class Mute(Uniform):
        decide = property()

    with pytest.raises(TypeError, match=r"which lacks decide; give a policy"):
        Bandit(["a", "b"], 2, policy=Mute())


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_found_by_its_name_in_any_spelling(name: str) -> None:
    with pytest.raises(TypeError, match=rf"give an instance: armlet\.{name}\("):
        Bandit(["a", "b"], 2, policy=name.upper())  # type: ignore[arg-type]
    assert type(getattr(armlet, name)(**SETTINGS[name][0])) is POLICIES[name]
    assert getattr(importlib.import_module("armlet.policies"), name) is POLICIES[name]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    for module in (armlet, armlet.policies):
        with pytest.raises(AttributeError, match="has no attribute 'LinUBC'"):
            module.LinUBC  # noqa: B018


# ---- arrays of labels


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["a", "bcd"], "U"),
        (["", "ä\0b"], "U"),
        ([3, -(2**63), 2**63 - 1], "i"),
        (["a", 1], "O"),
        (["a", "b\0"], "O"),
        ([1, 2**63], "O"),
        (["a" * WIDEST, "b"], "U"),
        (["a" * (WIDEST + 1), "b"], "O"),
    ],
)
def test_an_array_of_labels_holds_them_unchanged(labels: list[Arm], kind: str) -> None:
    array = label_array(labels)
    assert array.dtype.kind == kind
    assert array.tolist() == labels
    assert [type(label) for label in array.tolist()] == [type(label) for label in labels]


@pytest.mark.parametrize("arms", [["no", "yes"], [0, 1], [-7, 2**40]])
def test_predictions_go_into_the_metrics_of_sklearn(arms: list[Arm]) -> None:
    bandit = Bandit(arms, 1, policy=LinUCB(units="as given"), seed=1)
    bandit.partial_fit([[1.0], [-1.0]], [arms[1], arms[0]], [1.0, 1.0])
    predicted = bandit.predict([[1.0], [-1.0], [2.0]])
    truth = np.array([arms[1], arms[0], arms[0]])
    assert accuracy_score(truth, predicted) == 2 / 3
    assert confusion_matrix(truth, predicted).tolist() == [[1, 1], [0, 1]]
    bandit.partial_fit([[1.0]], predicted[:1], [1.0])  # and back into the bandit
