"""The environments of the paper's figures and sections: Figures (a) and (b), Section 4.1, Section 7.

Readings of the printed text:

- Figure (a): a context of zeros cannot be normalised. It stays zero, where every arm is worth 0 and nothing can be
  learned, or with zero="resample" is drawn again. A reward uniform "on [0, 2 x'theta]" is uniform between the two ends
  in either order, mu (1 + u) with u uniform on [-1, 1], so its mean is mu = x'theta for either sign.
- Figure (b): the contexts are not normalised, and their span is a plane: E xx' has rank 2 of 3, so sigma_min is its
  smallest eigenvalue that is not zero, close to 1/I for large I. The figure's caption says that contexts are not
  i.i.d.; they are, only skewed.
- Section 4.1: the "uniform distribution" of theta's entries is that on [0, 1]; a context of zeros stays zero; Theta is
  drawn again for every arm and step, uniform within F of theta. The paper leaves open whether entries fluctuate
  independently. If they do, the noise F x'u has sigma = F / sqrt 3 for any d; if they move together, it reaches
  F sqrt d, which is where the paper's L = O(sqrt d) is tight.
- Section 7: the paper gives the contexts only; parameters and rewards are those of Section 6. E xx' is
  [[1, 1/I], [1/I, 1/I]], whose smallest eigenvalue is about 1/I. (1, 1) has length sqrt 2, beyond the length 1 that the
  theorem assumes. I grows "slowly": 2 + log t, 2 + log^2 t or 2 + sqrt t; then the law of contexts changes from step to
  step, sigma_min tends to 0 and Theorem 2 does not apply; contexts stay independent.

Drawing n steps is O(n (d + K)), O(n K d) for Section 4.1; their means O(n K d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.environment import (
    MAX_BITS,
    Constants,
    FiniteEnvironment,
    LinearArms,
    ListedContexts,
    Noise,
    as_rows,
    bit_law,
    check_between,
    check_steps,
    scale_bits,
    scaled_bits_eigenvalue,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64, Int64

Zero: TypeAlias = Literal["keep", "resample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureA(LinearArms):
    """One environment of the Figure (a) problem: theta is fixed, contexts and rewards are drawn.

    Contexts and rewards take their generators separately, so that for any policy, and however
    many rewards are drawn, the contexts stay the same.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm. `FigureA.draw` draws it as the paper does.
    zero
        What becomes of a context of zeros, one in 2^d: "keep" it, or "resample" until it is not zero.

    Examples
    --------
    >>> environment = FigureA(theta=((1.0, 0.0, 0.0), (0.0, 1.0, -1.0)))
    >>> environment.n_arms, environment.dim
    (2, 3)
    >>> environment.means(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """

    zero: Zero = "keep"

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        if self.zero not in ("keep", "resample"):
            raise InvalidValueError(f"zero is {self.zero!r}; choose 'keep' or 'resample'")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, n_arms: int = 6, dim: int = 3, zero: Zero = "keep") -> Self:
        """Draw the parameters of an environment, independent standard gaussians.

        Examples
        --------
        >>> environment = FigureA.draw(np.random.default_rng(0))
        >>> environment.n_arms, environment.dim
        (6, 3)
        """
        return cls(theta=as_rows(rng.standard_normal((n_arms, dim))), zero=zero)

    def support(self) -> Float64:
        """Every context the environment can show, each as likely as any other: (2^d, d), or one less without zero.

        Examples
        --------
        >>> FigureA(theta=((1.0, 2.0),)).support().round(3)
        array([[0.   , 0.   ],
               [0.   , 1.   ],
               [1.   , 0.   ],
               [0.707, 0.707]])
        """
        rows, _ = bit_law((0.5,) * self.dim)
        return scale_bits(rows if self.zero == "keep" else rows[1:])

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts, fair coin flips scaled to length 1: (n, d).

        Examples
        --------
        >>> environment = FigureA.draw(np.random.default_rng(0))
        >>> environment.contexts(np.random.default_rng(1), 2).round(3)
        array([[0.   , 0.707, 0.707],
               [1.   , 0.   , 0.   ]])
        """
        check_steps(n, start)
        if self.zero == "keep":
            return scale_bits(rng.integers(0, 2, size=(n, self.dim)).astype(np.float64))
        return scale_bits(_flips_but_not_all_zero(rng, n, self.dim))

    def reward_noise(self) -> tuple[Noise, float]:
        return "proportional", 1.0

    def table(self) -> FiniteEnvironment | None:
        if self.dim > MAX_BITS:
            return None
        X = self.support()
        return self.tabulate(X, np.full(len(X), 1 / len(X)))

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> for line in FigureA.draw(np.random.default_rng(0)).describe()[:3]:
        ...     print(line)
        Figure (a), Section 6: 6 arms
        contexts: 3 fair coin flips scaled to length 1; zero contexts: keep
        rewards: uniform between 0 and twice the mean x'theta, without unit
        """
        return [
            f"Figure (a), Section 6: {self.n_arms} arms",
            f"contexts: {self.dim} fair coin flips scaled to length 1; zero contexts: {self.zero}",
            "rewards: uniform between 0 and twice the mean x'theta, without unit",
            *self.describe_constants(),
        ]


def _flips_but_not_all_zero(rng: np.random.Generator, n: int, dim: int) -> Float64:
    # Flip by flip, from the law given that not all are zero: while the row is blank, the next of m flips
    # left is 1 with probability (1/2) / (1 - 2^-m). Every row takes d draws, so blocks of any size agree.
    u = rng.random((n, dim))
    bits = u < 0.5
    blank = np.ones(n, dtype=np.bool_)
    for j in range(dim):
        bits[blank, j] = u[blank, j] < 0.5 / (1 - 0.5 ** (dim - j))
        blank &= ~bits[:, j]
    return bits.astype(np.float64)


FIGURE_B_CONTEXTS = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])  # the rare context first


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureB(ListedContexts):
    """One environment of the Figure (b) problem.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 3)
        The parameter of each arm.
    I
        [1, 1, 1] comes with probability 1/I, otherwise [1, 0, 1]. The paper shows 5, 10 and 100.

    Examples
    --------
    >>> environment = FigureB(theta=((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)), I=10)
    >>> environment.contexts(np.random.default_rng(3), 3)
    array([[1., 1., 1.],
           [1., 0., 1.],
           [1., 0., 1.]])
    """

    I: float = 10.0  # noqa: E741

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("I", self.I, 1.0, np.inf)
        if self.dim != 3:
            raise InvalidValueError(f"theta has rows of {self.dim} values but the contexts of Figure (b) have 3")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, I: float = 10.0, n_arms: int = 6) -> Self:  # noqa: E741
        """Draw the parameters of an environment, independent standard gaussians, as for Figure (a).

        Examples
        --------
        >>> FigureB.draw(np.random.default_rng(0), I=100).n_arms
        6
        """
        return cls(theta=as_rows(rng.standard_normal((n_arms, 3))), I=I)

    def context_law(self) -> tuple[Float64, Float64]:
        """Return both contexts, the rare one first, and their chances."""
        return FIGURE_B_CONTEXTS, np.array([1 / self.I, 1 - 1 / self.I])

    def reward_noise(self) -> tuple[Noise, float]:
        return "proportional", 1.0

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> FigureB.draw(np.random.default_rng(0)).describe()[1]
        'contexts: [1, 1, 1] with probability 1/10, otherwise [1, 0, 1]'
        """
        return [
            f"Figure (b), Section 6: {self.n_arms} arms",
            f"contexts: [1, 1, 1] with probability 1/{self.I:g}, otherwise [1, 0, 1]",
            "rewards: uniform between 0 and twice the mean x'theta, without unit",
            *self.describe_constants(),
        ]


Entries: TypeAlias = Literal["independent", "together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section41(LinearArms):
    """One environment of Section 4.1.

    Its noise has no name in a table, so `table()` is None; up to 16 dimensions its constants are exact.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The mean of each arm's Theta. `Section41.draw` draws it as the paper does.
    w
        The chance that an entry of a context is not zero, in (0, 1].
    F
        How far an entry of Theta may be from its mean.
    entries
        Whether the entries of Theta fluctuate "independent" of each other or all "together".

    Examples
    --------
    >>> environment = Section41.draw(np.random.default_rng(0), n_arms=4, dim=5, w=0.4)
    >>> environment.n_arms, environment.dim, round(environment.sigma_min(), 5)
    (4, 5, 0.13056)
    """

    w: float = 0.5
    F: float = 0.5
    entries: Entries = "independent"

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("w", self.w, 0.0, 1.0)
        check_between("F", self.F, 0.0, math.inf)
        if self.w == 0.0:
            raise InvalidValueError("w is 0 but then every context is zero; give a value in (0, 1]")
        if self.entries not in ("independent", "together"):
            raise InvalidValueError(f"entries is {self.entries!r}; choose 'independent' or 'together'")

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        n_arms: int = 6,
        dim: int = 5,
        w: float = 0.5,
        F: float = 0.5,
        entries: Entries = "independent",
    ) -> Self:
        """Draw theta: entries uniform on [0, 1], then every arm scaled to length 1."""
        theta = rng.random((n_arms, dim))
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        return cls(theta=as_rows(theta), w=w, F=F, entries=entries)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts, each entry 1 with probability w, scaled to length 1: (n, d)."""
        check_steps(n, start)
        return scale_bits((rng.random((n, self.dim)) < self.w).astype(np.float64))

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context, x'Theta with a Theta of its own: (n, K)."""
        mu = self.means(X, start=start)
        if self.entries == "together":
            moves = rng.uniform(-1.0, 1.0, size=mu.shape) * np.abs(X).sum(axis=1, keepdims=True)
        else:
            moves = np.einsum("nkd,nd->nk", rng.uniform(-1.0, 1.0, size=(*mu.shape, self.dim)), X)
        noisy: Float64 = mu + self.F * moves
        return noisy

    def sigma_min(self) -> float:
        """Return sigma_min in closed form, for any d.

        Examples
        --------
        >>> Section41(theta=((1.0, 0.0, 0.0),), w=0.5).sigma_min()
        0.1875
        """
        return scaled_bits_eigenvalue(dim=self.dim, w=self.w)

    def constants(self) -> Constants:
        """Return the exact constants, up to 16 dimensions; beyond, delta_min would need all 2^d contexts."""
        if self.dim > MAX_BITS:
            raise InvalidValueError(
                f"delta_min is a minimum over 2^{self.dim} contexts, too many; sigma_min() has a formula"
            )
        rows, chances = bit_law((self.w,) * self.dim)
        # the noise is a sum of uniforms on [-F x_i, F x_i]: the squares of their constants add up to
        # F^2 |x|_2^2 / 3 if independent; one uniform on [-F |x|_1, F |x|_1] if together
        reach = math.sqrt(self.dim) if self.entries == "together" else 1.0
        noiseless = self.tabulate(scale_bits(rows), chances)
        return Constants.of(noiseless, np.array(self.theta), sigma=self.F * reach / math.sqrt(3.0))

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> Section41.draw(np.random.default_rng(0)).describe()[1]
        'contexts: 5 entries, each 1 with probability 0.5, scaled to length 1; zero stays zero'
        """
        return [
            f"Section 4.1: {self.n_arms} arms",
            f"contexts: {self.dim} entries, each 1 with probability {self.w:g}, scaled to length 1; zero stays zero",
            f"rewards: x'Theta, entries of Theta within {self.F:g} of theta and {self.entries}, without unit",
            *([] if self.dim <= MAX_BITS else [f"sigma_min = {self.sigma_min():.6g}, from its formula"]),
            *self.describe_constants(),
        ]


SECTION_7_CONTEXTS = np.array([[1.0, 1.0], [1.0, 0.0]])  # the rare context first


@dataclass(frozen=True, slots=True, kw_only=True)
class Section7(ListedContexts):
    """One environment of Section 7 with a fixed I.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 2)
        The parameter of each arm.
    I
        (1, 1) comes with probability 1/I, otherwise (1, 0).
    noise, scale
        How rewards spread, a `Noise`; by default uniform between 0 and twice the mean.

    Examples
    --------
    >>> environment = Section7(theta=((1.0, 0.0), (0.0, 2.0)), I=20)
    >>> environment.table().chances
    array([0.05, 0.95])
    """

    I: float = 10.0  # noqa: E741
    noise: Noise = "proportional"
    scale: float = 1.0

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("I", self.I, 1.0, np.inf)
        check_between("scale", self.scale, 0.0, np.inf)
        if self.dim != 2:
            raise InvalidValueError(f"theta has rows of {self.dim} values but the contexts of Section 7 have 2")
        self.table()  # refuses noise that is not known or does not suit theta

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        I: float = 10.0,  # noqa: E741
        n_arms: int = 6,
        noise: Noise = "proportional",
        scale: float = 1.0,
    ) -> Self:
        """Draw the parameters of an environment, independent standard gaussians, as for Figure (a)."""
        return cls(theta=as_rows(rng.standard_normal((n_arms, 2))), I=I, noise=noise, scale=scale)

    def context_law(self) -> tuple[Float64, Float64]:
        """Return both contexts, the rare one first, and their chances."""
        return SECTION_7_CONTEXTS, np.array([1 / self.I, 1 - 1 / self.I])

    def reward_noise(self) -> tuple[Noise, float]:
        return self.noise, self.scale

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> Section7.draw(np.random.default_rng(0)).describe()[1]
        'contexts: (1, 1) with probability 1/10, otherwise (1, 0)'
        """
        return [
            f"Section 7: {self.n_arms} arms, a rare context and a common one",
            f"contexts: (1, 1) with probability 1/{self.I:g}, otherwise (1, 0)",
            f"rewards: {self.noise} noise of scale {self.scale:g} around x'theta, without unit",
            *self.describe_constants(),
        ]


Rate: TypeAlias = Literal["log", "log2", "sqrt"]
RATE_WORDS: dict[Rate, str] = {"log": "log t", "log2": "log^2 t", "sqrt": "sqrt t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section7Growing(LinearArms):
    """One environment of Section 7 in which (1, 1) comes with probability 1/I(t).

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, 2)
        The parameter of each arm.
    rate
        I(t) is 2 + log t for "log", 2 + log^2 t for "log2", 2 + sqrt t for "sqrt".
    noise, scale
        How rewards spread, as in `Section7`.

    Examples
    --------
    >>> environment = Section7Growing(theta=((1.0, 0.0), (0.0, 2.0)), rate="sqrt")
    >>> environment.rarity(np.array([1, 4, 10_000]))
    array([  3.,   4., 102.])
    """

    rate: Rate = "log"
    noise: Noise = "proportional"
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.rate not in RATE_WORDS:
            raise InvalidValueError(f"rate is {self.rate!r}; choose 'log', 'log2' or 'sqrt'")
        self.at(1)  # refuses what a fixed I refuses

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        rate: Rate = "log",
        n_arms: int = 6,
        noise: Noise = "proportional",
        scale: float = 1.0,
    ) -> Self:
        """Draw the parameters of an environment, independent standard gaussians, as for Figure (a)."""
        return cls(theta=as_rows(rng.standard_normal((n_arms, 2))), rate=rate, noise=noise, scale=scale)

    def rarity(self, t: Int64) -> Float64:
        """Return I(t) for steps t >= 1."""
        growth: Float64 = np.sqrt(t) if self.rate == "sqrt" else np.log(t)
        return 2.0 + (growth * growth if self.rate == "log2" else growth)

    def at(self, t: int) -> Section7:
        """Freeze the environment as it is at step t.

        Examples
        --------
        >>> Section7Growing(theta=((1.0, 0.0), (0.0, 2.0)), rate="sqrt").at(64).I
        10.0
        """
        rarity = float(self.rarity(np.array([t]))[0])
        return Section7(theta=self.theta, I=rarity, noise=self.noise, scale=self.scale)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        check_steps(n, start)
        common = rng.random(n) * self.rarity(np.arange(start + 1, start + n + 1)) >= 1.0
        chosen: Float64 = SECTION_7_CONTEXTS[common.astype(np.int64)]
        return chosen

    def reward_noise(self) -> tuple[Noise, float]:
        return self.noise, self.scale

    def constants(self) -> Constants:
        """Refuse: sigma_min changes with t. `at(t).constants()` has those of one step."""
        raise InvalidValueError("sigma_min does not exist: it falls to 0 as I grows; at(t).constants() is for one step")

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are at two steps.

        Examples
        --------
        >>> Section7Growing.draw(np.random.default_rng(0), rate="log2").describe()[1]
        'contexts: (1, 1) with probability 1/I(t), I(t) = 2 + log^2 t, otherwise (1, 0)'
        """
        early, late = (self.at(t).describe_constants() for t in (1, 1_000_000))
        return [
            f"Section 7: {self.n_arms} arms, a common context and one that becomes ever rarer",
            f"contexts: (1, 1) with probability 1/I(t), I(t) = 2 + {RATE_WORDS[self.rate]}, otherwise (1, 0)",
            f"rewards: {self.noise} noise of scale {self.scale:g} around x'theta, without unit",
            f"at t = 1: {early[0]}",
            f"at t = 10^6: {late[0]}",
            *early[1:],
        ]
