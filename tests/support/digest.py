"""What every compiled policy plays on one stream, as a digest for each: the same on every system.

Needs armlet and numpy alone, so that it runs wherever a wheel is installed:

    python -m support.digest            compare with what is on record
    python -m support.digest --record   write it again, after a change that is meant to change decisions
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

import armlet
from armlet.reference.linear import ordered_scores
from armlet.types import Float64, Policy
from support.policies import DIM, N_ARMS, every_policy

RECORD: Final = Path(__file__).parent / "digests.json"
STEPS: Final = 400
SEED: Final = 20131017
MORE: Final[list[Policy]] = [
    armlet.ThompsonSampling(),
    armlet.ThompsonSampling(v=0.3, units="as given"),
    armlet.LinUCB(alpha=0.4, units="as given"),
    armlet.OFUL(delta=0.01),
    armlet.Greedy(units="as given"),
    armlet.FixedEpsilon(epsilon=0.3, units="as given"),
    armlet.SquareCB(units="as given"),
    armlet.SquareCB(gamma=5.0),
]
"""With what the settings of the contract leave out: widths that hold a logarithm, units as given."""


def compiled() -> list[Policy]:
    """List the policies that the kernel plays."""
    return [policy for policy in [*every_policy(), *MORE] if policy.rule() is not None]


def numbers(key: int, n: int) -> Float64:
    """Return n numbers on a grid of 2^-20 from -1 to 1: words of Philox, whose sums and products are exact for long."""
    words = np.random.Philox(key=key).random_raw(n)
    return (words >> np.uint64(43)).astype(np.float64) * 2.0**-20 - 1.0


def stream() -> tuple[Float64, Float64]:
    """Return contexts (T, d) and what each arm pays (T, K), not by numpy's `@`, whose order of sums is the system's."""
    X, theta = numbers(1, STEPS * DIM).reshape(STEPS, DIM), numbers(2, N_ARMS * DIM).reshape(N_ARMS, DIM)
    X[:, 0] = 1.0
    return X, ordered_scores(X, theta) + 0.25 * numbers(3, STEPS * N_ARMS).reshape(STEPS, N_ARMS)


def play(policy: Policy) -> Iterator[bytes]:
    """Give, step by step, the bits of what a policy decided; now and then those of all probabilities."""
    bandit = armlet.Bandit(range(N_ARMS), DIM, policy=policy, seed=SEED)
    for t, (x, rewards) in enumerate(zip(*stream(), strict=True)):
        decision = bandit.decide(x)
        yield struct.pack("<qd?", decision.arm, decision.propensity, decision.explored)
        if t % 3:
            bandit.learn(decision, float(rewards[decision.arm]))
        else:  # some rewards never come
            bandit.expire(decision)
        if t % 20 == 0:
            yield bandit.predict_proba(x[None]).astype("<f8").tobytes()


def digest(policy: Policy) -> str:
    """Return 64 bits of SHA-256 over what a policy plays."""
    whole = hashlib.sha256()
    for part in play(policy):
        whole.update(part)
    return whole.hexdigest()[:16]


def digests() -> dict[str, str]:
    """Return the digest of every compiled policy."""
    return {repr(policy): digest(policy) for policy in compiled()}


def main() -> int:
    """Compare with the record, or write it."""
    found = digests()
    if sys.argv[1:] == ["--record"]:
        RECORD.write_text(json.dumps(found, indent=2) + "\n")
        return 0
    kept = json.loads(RECORD.read_text())
    differing = [name for name in {**kept, **found} if kept.get(name) != found.get(name)]
    print(*(f"differs: {name}" for name in differing), sep="\n", end="\n" if differing else "")
    print(f"{len(found) - len(differing)} of {len(found)} compiled policies play the bits on record")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
