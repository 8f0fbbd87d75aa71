"""Make the drawing of docs/anatomy.md: the four parts of the scores of one small made-up head.

    python docs/drawing.py

The head has rotary position. Its mean key is its mean query turned by one place, so it favours near
positions; its first key lies along the mean query, which makes it a sink; and two queries look for two keys.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from isoscope.geometry.anatomy import PARTS, parts
from isoscope.show.colours import INK, SIGNED, SOFT
from isoscope.show.colours import PARTS as COLOURS

OUT = Path(__file__).parent / "assets" / "anatomy.svg"
TOKENS, WIDTH, FAST = 12, 20, 10  # the coordinates that turn fast tell positions apart
SCORE = "what the softmax\nturns into attention"
SAYS = {
    "position": "the same for every text:\nnear positions",
    "key": "what every query favours:\nthe first key, a sink",
    "query position": "one query's own\npreferred places",
    "content": "this query with this key:\ntwo queries find theirs",
}


def turned(vectors: torch.Tensor) -> torch.Tensor:
    """Rotary position: pairs of coordinates turned by an angle that grows with the position."""
    speed = torch.where(torch.arange(WIDTH // 2) < FAST // 2, 0.9 / 1.6 ** torch.arange(WIDTH // 2), 0.01)
    angles = torch.arange(len(vectors))[:, None] * speed
    one, two = vectors.unflatten(-1, (-1, 2)).unbind(-1)
    both = one * angles.cos() - two * angles.sin(), one * angles.sin() + two * angles.cos()
    return torch.stack(both, -1).flatten(-2)


def head() -> list[torch.Tensor]:
    """The score of the head, then its four parts, each [query, key]."""
    generator = torch.Generator().manual_seed(6)

    def drawn(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    query = 1.3 * drawn(WIDTH)
    key = turned(query.expand(2, -1))[1]
    own, its = 0.4 * drawn(TOKENS, WIDTH), 0.25 * drawn(TOKENS, WIDTH)
    slow = torch.arange(WIDTH) >= FAST
    its[0] += 2 * query * slow
    for at, to in ((6, 3), (10, 5)):
        match = 1.6 * drawn(WIDTH) * slow
        own[at] += match
        its[to] += match
    means = [turned(each.expand(TOKENS, -1))[None, None] for each in (query, key)]
    whole = [turned(mean + each)[None, None] for mean, each in ((query, own), (key, its))]
    found = parts(*whole, *means, WIDTH**-0.5)
    return [each[0, 0] for each in (sum(found, torch.zeros(())), *found)]


def main() -> None:
    """Draw the score and its four parts side by side."""
    matrices, hidden = head(), torch.ones(TOKENS, TOKENS).triu(1).bool()
    far = max(float(each[~hidden].abs().max()) for each in matrices)
    colours = LinearSegmentedColormap.from_list("signed", [pair[0] for pair in SIGNED])
    with mpl.rc_context({"svg.hashsalt": "isoscope", "svg.fonttype": "path", "font.size": 8}):
        figure = Figure(figsize=(7.6, 2.3), layout="constrained")
        for at, (ax, matrix) in enumerate(zip(figure.subplots(1, 5), matrices, strict=True)):
            name = PARTS[at - 1] if at else "score"
            ax.imshow(matrix.masked_fill(hidden, torch.nan), cmap=colours, vmin=-far, vmax=far)
            ax.set(xticks=[], yticks=[])
            ax.set_xlabel(f"key\n\n{SAYS.get(name, SCORE)}", fontsize=7, color=SOFT[0])
            ax.set_title(f"{'= ' if at == 1 else '+ ' if at else ''}{name}", color=COLOURS.get(name, INK)[0])
            ax.spines[:].set_visible(False)
        figure.axes[0].set_ylabel("query", fontsize=7, color=SOFT[0])
        figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()
