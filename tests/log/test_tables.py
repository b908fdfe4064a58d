"""What is refused of a log's table, in the words of the library; a command line has its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from armlet.errors import ArgumentError
from armlet.log.tables import Roles, check_columns, flag_texts, labels, read_table

TABLE = pa.table({"age": [31.0, 44.0], "country": ["no", None], "ad": [0, 1], "click": [1.0, 0.0]})
ROLES = {"features": ("age",), "arm": "ad", "reward": "click"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": ("agee",)}, "features names 'agee', which is not a column of pilot.csv; did you mean 'age'?"),
        ({"reward": "ad"}, "reward names 'ad', which arm names before; give every column one part"),
        ({"propensity": "age"}, "propensity names 'age', which features names before; give every column one part"),
    ],
)
def test_roles_that_do_not_fit_are_refused_by_the_names_that_a_program_gives_them(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        check_columns(TABLE, "pilot.csv", Roles(**{**ROLES, **change}))  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_the_other_refusals_name_arguments_too(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no table")
    with pytest.raises(ArgumentError, match=r"^log is broken.parquet, which cannot be read: "):
        read_table(tmp_path / "broken.parquet")
    with pytest.raises(ArgumentError, match=r"^log is pilot.txt; give a file that ends in .csv, "):
        read_table(tmp_path / "pilot.txt")
    with pytest.raises(FileNotFoundError, match=r"^the log is .*none.csv, which does not exist$"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ArgumentError, match=r"^log is pilot.csv, which has no rows"):
        check_columns(TABLE.slice(0, 0), "pilot.csv", Roles(features=("age",), arm="ad", reward="click"))
    with pytest.raises(ArgumentError, match=r"^features names 'country', which has 1 rows without a value"):
        flag_texts(TABLE, ["country"])
    with pytest.raises(ArgumentError, match=r"^arm_names has 'b', but the log names arms by whole numbers$"):
        labels(TABLE["ad"].type, ("0", "b"))
