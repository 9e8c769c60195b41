"""Figures and reports, as notebooks show them."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, overload

__all__ = ["Figure", "Figures", "Report"]


@dataclass(frozen=True)
class Figure:
    """A figure: shown by a notebook, and saved by `save`."""

    name: str
    caption: str
    svg: str
    png: bytes

    def __repr__(self) -> str:
        return f"Figure({self.name!r}: {self.caption})"

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure; the ending, .png or .svg, says how.

        Returns the path.
        """
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(self.svg, encoding="utf-8")
        elif path.suffix == ".png":
            path.write_bytes(self.png)
        else:
            raise ValueError(f"{path}: the ending must be .png or .svg")
        return path

    def draw(self, ax: Any) -> Any:
        """Draw the figure into an axis of matplotlib, and return that axis."""
        import io

        from matplotlib.image import imread

        ax.imshow(imread(io.BytesIO(self.png)))
        ax.set_axis_off()
        return ax


class Figures(Sequence[Figure]):
    """The figures of a density: one for a map, several for pair plots."""

    def __init__(self, figures: list[Figure]) -> None:
        self._figures = figures

    @overload
    def __getitem__(self, index: int) -> Figure: ...

    @overload
    def __getitem__(self, index: slice) -> list[Figure]: ...

    def __getitem__(self, index: int | slice) -> Figure | list[Figure]:
        return self._figures[index]

    def __len__(self) -> int:
        return len(self._figures)

    def __repr__(self) -> str:
        return f"Figures({', '.join(figure.name for figure in self)})"

    def _repr_html_(self) -> str:
        def image(figure: Figure) -> str:
            data = base64.b64encode(figure.png).decode("ascii")
            caption = html.escape(figure.caption)
            return f'<figure><img width="800" alt="{caption}" src="data:image/png;base64,{data}"></figure>'

        return "".join(map(image, self))

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the figures: one figure to a file, .png or .svg; or all of them, as both, to a folder."""
        path = Path(path)
        if path.suffix in (".png", ".svg"):
            if len(self) != 1:
                raise ValueError(f"there are {len(self)} figures: give a folder instead of {path}")
            return [self[0].save(path)]
        path.mkdir(parents=True, exist_ok=True)
        return [figure.save(path / f"{figure.name}{ending}") for figure in self for ending in (".svg", ".png")]


@dataclass(frozen=True)
class Report:
    """The report of a fit: one page with figures, scores, settings and warnings."""

    html: str
    text: str

    @property
    def numbers(self) -> dict[str, Any]:
        """The same as data."""
        numbers: dict[str, Any] = json.loads(self.text)
        return numbers

    def __repr__(self) -> str:
        return f"Report({self.numbers['experiment']!r})"

    def _repr_html_(self) -> str:
        # a frame, so that the page and the notebook keep their own styles
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="800" style="border:0"></iframe>'

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file."""
        path = Path(path)
        path.write_text(self.html, encoding="utf-8")
        return path
