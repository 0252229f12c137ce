"""Tables: as Markdown, HTML and LaTeX, and the rule by which a printed figure is compared with ours."""

import html
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from .runs import Preset

RULE = (
    "Verdicts on networks: a printed figure is one run with an unknown seed. It is *inside the spread* if it lies, to "
    "the precision that it is printed in, within the 95 % prediction interval for one more run, mean ± t·s·√(1 + 1/n), "
    "from the mean and the standard deviation s of our n seeds (errors on a logarithmic scale). Otherwise ours is "
    "*better* or *worse*; of many lines, one in twenty is by chance. With fewer than three seeds there are *too few* "
    "for a spread. Runs that diverged are counted beside the mean and left out of it; *diverged*: all did. *Not run*: "
    "there is no record. *No verdict*: the protocol is not the paper's."
)
# Two seeds have an interval, too, but it is 22 times as wide as they are apart.
_FEWEST = 3
MISSING = "—"


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of text, and notes below it. `name` is that of its file."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", _row(self.header), _row(("---",) * len(self.header)), *map(_row, self.rows)]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def html(self) -> str:
        def cells(row: Sequence[str], tag: str) -> str:
            parts = [html.escape(cell).replace(" ± ", "&nbsp;±&nbsp;") for cell in row]
            return "<tr>" + "".join(f"<{tag}>{part}</{tag}>" for part in parts) + "</tr>"

        body = "\n".join([cells(self.header, "th"), *(cells(row, "td") for row in self.rows)])
        notes = "".join(f"<p class=note>{prose(note)}</p>" for note in self.notes)
        return f"<table><caption>{html.escape(self.title)}</caption>\n{body}\n</table>{notes}"

    def latex(self) -> str:
        """For a document with booktabs and adjustbox, by which a table that is too large for the page shrinks to it."""
        lines = [" & ".join(map(_tex, row)) + r" \\" for row in (self.header, *self.rows)]
        rows = "\n".join([r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"])
        columns = "l" + "r" * (len(self.header) - 1)
        parts = [
            r"% \usepackage{adjustbox, booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(self.title)}}}",
            r"\begin{adjustbox}{max width=\linewidth, max totalheight=0.9\textheight}",
            rf"\begin{{tabular}}{{{columns}}}",
            rows,
            r"\end{tabular}",
            r"\end{adjustbox}",
            r"\end{table}",
        ]
        return "\n".join(parts) + "\n"


def prose(text: str) -> str:
    """A text with Markdown's *emphasis* and `code` as HTML."""
    text = re.sub(r"\*(.+?)\*", r"<em>\1</em>", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def verdict(printed: str | None, ours: Sequence[float], preset: Preset, *, lower_is_better: bool) -> str:
    """What `RULE` says of a printed figure and ours, one for each seed; it is not finite if the run diverged."""
    if not ours:
        return "not run"
    if not (ours := _ended(ours)):
        return "diverged"
    if preset == "quick":
        return "no verdict"
    if printed is None:
        return "not printed"
    if len(ours) < _FEWEST:
        return "too few seeds"
    low, high = _interval(ours, logarithmic=lower_is_better)
    half = 0.5 * 10.0 ** int(Decimal(printed).as_tuple().exponent)
    below, above = high < float(printed) - half, low > float(printed) + half
    if not (below or above):
        return "inside the spread"
    return "better" if below == lower_is_better else "worse"


def spread(ours: Sequence[float], digits: str) -> str:
    """The mean and the standard deviation over the seeds, without those that diverged, and the number of these."""
    if not ours:
        return MISSING
    ended = _ended(ours)
    if not ended:
        return "diverged"
    deviation = f" ± {statistics.stdev(ended):{digits}}" if len(ended) > 1 else ""
    left_out = f" ({len(ours) - len(ended)} diverged)" if len(ended) < len(ours) else ""
    return f"{statistics.fmean(ended):{digits}}{deviation}{left_out}"


def _ended(ours: Sequence[float]) -> list[float]:
    return [value for value in ours if math.isfinite(value)]


def _interval(ours: Sequence[float], *, logarithmic: bool) -> tuple[float, float]:
    """The 95 % prediction interval for one more run."""
    from scipy.stats import t

    n = len(ours)
    values = [math.log(max(value, 1e-300)) for value in ours] if logarithmic else list(ours)
    reach = float(t.ppf(0.975, n - 1)) * statistics.stdev(values) * math.sqrt(1 + 1 / n)
    ends = statistics.fmean(values) - reach, statistics.fmean(values) + reach
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# What LaTeX reads otherwise than it stands: its own characters, and symbols.
_ESCAPED = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", **{mark: f"\\{mark}" for mark in "&%#_${}"}}
_MATHS = {
    "±": r"\pm",
    "×": r"\times",
    "≈": r"\approx",
    "≤": r"\le",
    "ω": r"\omega",
    "η": r"\eta",
    "μ": r"\mu",
    "Σ": r"\Sigma",
    "Ω": r"\Omega",
    "∇": r"\nabla",
    "∂": r"\partial",
    "‖": r"\|",
    "¼": r"\frac14",
    "₀": "_0",
    "₁": "_1",
    "₂": "_2",
    "¹": "^1",
    "²": "^2",
    "⁻": "^-",
    "ᵀ": r"^\top",
}
_SYMBOLS = _ESCAPED | {MISSING: "---"} | {symbol: f"${command}$" for symbol, command in _MATHS.items()}


def _tex(text: str) -> str:
    return "".join(_SYMBOLS.get(character, character) for character in text)
