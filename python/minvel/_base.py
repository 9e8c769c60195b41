"""What estimators are made of: scikit-learn's classes where it is installed, else just enough of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._table import Table

__all__ = ["BaseEstimator", "DensityMixin", "NotFittedError", "OutlierMixin", "all_or_nothing", "check_features"]


class _Parameters:
    """Parameters by name, as scikit-learn has them."""

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"unknown parameter {name!r}; expected one of {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        given = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(given)})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _Nothing:
    pass


class _FitPredict:
    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Any:
        """Fit to X and tell its outliers."""
        return self.fit(X, **kwargs).predict(X)  # type: ignore[attr-defined]


if TYPE_CHECKING:
    BaseEstimator = _Parameters
    DensityMixin = _Nothing
    OutlierMixin = _FitPredict

    class NotFittedError(ValueError, AttributeError):
        """The estimator has not been fitted yet."""

    validate_data: Any
else:
    try:
        from sklearn.base import BaseEstimator, DensityMixin, OutlierMixin
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import validate_data
    except ImportError:
        validate_data = None
        BaseEstimator, DensityMixin, OutlierMixin = _Parameters, _Nothing, _FitPredict

        class NotFittedError(ValueError, AttributeError):
            """The estimator has not been fitted yet."""


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """A change of an estimator; after an error, or Ctrl-C, it is what it was before."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def check_features(estimator: Any, X: Any, table: Table, reset: bool) -> None:
    """Keep (`reset`) or compare the number of features and their names."""
    if validate_data is not None and table.library in ("numpy", "pandas", "polars"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return
    if reset:
        estimator.n_features_in_ = len(table.names)
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and table.named and list(known) != table.names:
        raise ValueError(
            f"The feature names should match those that were passed during fit: expected {', '.join(known)}, not "
            f"{', '.join(table.names)}"
        )
    if estimator.n_features_in_ != len(table.names):
        raise ValueError(
            f"X has {len(table.names)} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
