"""The encoder where scikit-learn expects a transformer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.linear_model import LinearRegression  # type: ignore[import-untyped]
from sklearn.model_selection import GridSearchCV  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

import armlet

FRAME = pd.DataFrame({"colour": ["red", "blue", "red", "green"] * 5, "price": np.arange(20.0)}, index=range(100, 120))
PAYS = FRAME["price"] + 10.0 * (FRAME["colour"] == "red")


def test_a_clone_has_the_settings_and_has_seen_nothing() -> None:
    encoder = armlet.Encoder(hashed={"colour": 4}, most=7).fit(FRAME)
    twin = clone(encoder)
    assert twin.get_params() == encoder.get_params()
    assert twin.is_fitted is False
    assert repr(twin) == "Encoder(hashed={'colour': 4}, most=7)"
    with pytest.raises(ValueError, match="Encoder has no setting 'n'; it has columns, categories"):
        twin.set_params(n=3)
    check_is_fitted(encoder)


def test_a_pipeline_of_a_data_frame_fits_and_predicts() -> None:
    model = make_pipeline(armlet.Encoder(), LinearRegression()).fit(FRAME, PAYS)
    assert np.allclose(model.predict(FRAME), PAYS)
    assert model[:-1].get_feature_names_out().tolist() == [
        "colour=blue",
        "colour=green",
        "colour=red",
        "colour=other",
        "price",
    ]


def test_settings_are_searched_over() -> None:
    search = GridSearchCV(
        make_pipeline(armlet.Encoder(), LinearRegression()), {"encoder__other": ["flag", "zeros"]}, cv=2
    )
    assert search.fit(FRAME, PAYS).best_score_ > 0.99


def test_data_frames_come_out_if_asked_for() -> None:
    model = make_pipeline(armlet.Encoder(), StandardScaler()).set_output(transform="pandas")
    out = model.fit_transform(FRAME)
    assert list(out.columns) == ["colour=blue", "colour=green", "colour=red", "colour=other", "price"]
    assert list(out.index) == list(FRAME.index)
    assert armlet.Encoder().set_output(transform="polars").fit_transform(FRAME).columns[-1] == "price"
    with pytest.raises(ValueError, match="transform is 'arrow'; choose"):
        armlet.Encoder().set_output(transform="arrow")  # type: ignore[arg-type]
