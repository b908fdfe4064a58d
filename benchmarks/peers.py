"""What is measured: the libraries, how each is installed, and the rows that each has in the table.

A new peer is one entry here, one file in adapters/ and one pin in peers.txt.
"""

from dataclasses import dataclass
from enum import StrEnum


class Learner(StrEnum):
    """What a row does with a reward; exact ridge and gradient steps are different work."""

    NONE = "-"
    RIDGE = "exact ridge"
    SGD = "SGD"


class Rule(StrEnum):
    """How a row chooses, where Armlet and peers have the same rule to compare."""

    OTHER = "-"
    LINUCB = "LinUCB"
    OFUL = "OFUL"
    THOMPSON = "Thompson sampling"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    variant: str  # as the adapter knows it
    label: str
    learner: Learner
    rule: Rule = Rule.OTHER
    depends_on_t: bool = False  # Algorithm 1 explores less and less: warmed up to a late step


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A library, or what runs in our own environment where `requires` is empty."""

    name: str
    adapter: str
    import_line: str
    rows: tuple[Row, ...]
    requires: tuple[str, ...] = ()
    without_dependencies: tuple[str, ...] = ()  # installed first, with --no-deps
    for_the_worker: tuple[str, ...] = ()  # needed to measure it, not counted in its size


ALGORITHM_1 = Row("armlet", "Armlet, Algorithm 1", Learner.RIDGE, depends_on_t=True)
DEFAULT = Row("default", "Armlet, the default", Learner.RIDGE, depends_on_t=True)
EARLY_DEFAULT = Row("default", "Armlet, the default, early", Learner.RIDGE)
ARMLET = Peer(
    name="armlet",
    adapter="armlet",
    import_line="import armlet",
    rows=(
        ALGORITHM_1,
        Row("ucb", "Armlet, LinUCB", Learner.RIDGE, Rule.LINUCB),
        Row("oful", "Armlet, OFUL", Learner.RIDGE, Rule.OFUL),
        Row("ts", "Armlet, Thompson sampling", Learner.RIDGE, Rule.THOMPSON),
        DEFAULT,
        EARLY_DEFAULT,
        Row("greedy", "Armlet, greedy", Learner.RIDGE),
        Row("epsilon", "Armlet, constant epsilon", Learner.RIDGE),
        Row("squarecb", "Armlet, SquareCB", Learner.RIDGE),
    ),
)
NUMPY = Peer(
    name="numpy",
    adapter="plain",
    import_line="import numpy",
    rows=(
        Row("floor", "the loop around nothing", Learner.NONE, depends_on_t=True),
        Row("cached", "Algorithm 1 in numpy, cached estimates", Learner.RIDGE, depends_on_t=True),
        Row("printed", "Algorithm 1 in numpy, as printed", Learner.RIDGE, depends_on_t=True),
    ),
)
VOWPAL_WABBIT = Peer(
    name="vowpalwabbit",
    adapter="vowpalwabbit",
    import_line="import vowpalwabbit",
    requires=("vowpalwabbit",),
    for_the_worker=("numpy",),
    rows=(
        Row("text", "vowpalwabbit cb_explore epsilon, text", Learner.SGD),
        Row("example", "vowpalwabbit cb_explore epsilon, Example", Learner.SGD),
        Row("adf-epsilon", "vowpalwabbit adf epsilon", Learner.SGD),
        Row("adf-squarecb", "vowpalwabbit adf squarecb", Learner.SGD),
        Row("adf-regcb", "vowpalwabbit adf regcbopt", Learner.SGD),
    ),
)
VOWPAL_WABBIT_NEXT = Peer(
    name="vowpal-wabbit-next",
    adapter="vowpal_wabbit_next",
    import_line="import vowpal_wabbit_next",
    requires=("vowpal-wabbit-next",),
    rows=(
        Row("text", "vowpal-wabbit-next epsilon, text", Learner.SGD),
        Row("numpy", "vowpal-wabbit-next epsilon, numpy", Learner.SGD),
    ),
)
MABWISER = Peer(
    name="mabwiser",
    adapter="mabwiser",
    import_line="from mabwiser.mab import MAB",
    requires=("mabwiser",),
    rows=(
        Row("greedy", "MABWiser LinGreedy", Learner.RIDGE),
        Row("ucb", "MABWiser LinUCB", Learner.RIDGE, Rule.LINUCB),
        Row("ts", "MABWiser LinTS", Learner.RIDGE, Rule.THOMPSON),
    ),
)
CONTEXTUALBANDITS = Peer(
    name="contextualbandits",
    adapter="contextualbandits",
    import_line="import contextualbandits.online",
    requires=("contextualbandits",),
    rows=(
        Row("epsilon", "contextualbandits EpsilonGreedy", Learner.RIDGE),
        Row("ucb", "contextualbandits LinUCB", Learner.RIDGE, Rule.LINUCB),
        Row("ts", "contextualbandits LinTS", Learner.RIDGE, Rule.THOMPSON),
    ),
)
RIVER = Peer(
    name="river",
    adapter="river",
    import_line="from river import bandit, linear_model",
    requires=("river",),
    rows=(
        Row("ucb", "river LinUCBDisjoint", Learner.RIDGE, Rule.LINUCB),
        Row("bayes", "river BayesianLinearRegression + epsilon", Learner.RIDGE),
        Row("sgd", "river LinearRegression + epsilon", Learner.SGD),
    ),
)
BAYESIANBANDITS = Peer(
    name="bayesianbandits",
    adapter="bayesianbandits",
    import_line="import bayesianbandits",
    requires=("bayesianbandits",),
    rows=(
        Row("epsilon", "bayesianbandits EpsilonGreedy", Learner.RIDGE),
        Row("ts", "bayesianbandits ThompsonSampling", Learner.RIDGE, Rule.THOMPSON),
        Row("ucb", "bayesianbandits UpperConfidenceBound", Learner.RIDGE, Rule.LINUCB),
    ),
)
COBA = Peer(
    name="coba",
    adapter="coba",
    import_line="from coba.learners import LinUCBLearner; import numpy",
    requires=("coba", "numpy"),  # numpy is optional for the library, not for this learner
    rows=(Row("ucb", "coba LinUCB", Learner.RIDGE, Rule.LINUCB),),
)
OBP = Peer(
    name="obp",
    adapter="obp",
    import_line="import adapters.obp",  # without torch, see there
    without_dependencies=("obp",),
    requires=("numpy", "scikit-learn"),
    rows=(
        Row("epsilon", "OBP LinEpsilonGreedy", Learner.RIDGE),
        Row("ucb", "OBP LinUCB", Learner.RIDGE, Rule.LINUCB),
        Row("ts", "OBP LinTS", Learner.RIDGE, Rule.THOMPSON),
    ),
)

OURS = (ARMLET, NUMPY)
PEERS = (
    VOWPAL_WABBIT,
    VOWPAL_WABBIT_NEXT,
    MABWISER,
    CONTEXTUALBANDITS,
    RIVER,
    BAYESIANBANDITS,
    COBA,
    OBP,
)
