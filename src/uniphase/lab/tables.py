"""Tables in Markdown, HTML and LaTeX, and the rule for comparing a number printed in the paper with ours."""

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
# With two seeds the interval is 22 times as wide as the distance between them, so it would exclude almost nothing.
_MIN_SEEDS = 3
MISSING = "—"
# A number, with its spread or its unit, and a word in brackets.
_NUMBER = re.compile(r"[-−+≈<>]?\s*[\d.,]+(e[-+]?\d+)?(\s*[±×–/]\s*[\d.,]+(e[-+]?\d+)?)*\s*(%|dB|s|ms)?(\s*\(.*\))?$")


@dataclass(frozen=True)
class Table:
    """A table of text with a title, and with notes below it. `name` is the name of its file."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", _row(self.header), _row(("---",) * len(self.header)), *map(_row, self.rows)]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def html(self) -> str:
        """HTML: numbers to the right, words to the left, in a box that scrolls where the table is too wide."""
        columns = [_is_numeric([row[i] for row in self.rows]) for i in range(len(self.header))]

        def cells(row: Sequence[str], tag: str) -> str:
            parts = [html.escape(cell).replace(" ± ", "&nbsp;±&nbsp;") for cell in row]
            kinds = [' class="number"' if numeric else "" for numeric in columns]
            return "<tr>" + "".join(f"<{tag}{k}>{part}</{tag}>" for k, part in zip(kinds, parts, strict=True)) + "</tr>"

        body = "\n".join([cells(self.header, "th"), *(cells(row, "td") for row in self.rows)])
        notes = "".join(f"<p class=note>{prose(note)}</p>" for note in self.notes)
        title = html.escape(self.title)
        table = f"<table><caption>{title}</caption>\n{body}\n</table>"
        return f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">{table}</div>{notes}'

    def latex(self) -> str:
        """LaTeX for documents that load booktabs and adjustbox; the latter shrinks tables that exceed the page."""
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


def _is_numeric(column: Sequence[str]) -> bool:
    """Whether a column has numbers, some of which may be missing."""
    filled = [cell for cell in column if cell not in (MISSING, "", "diverged", "exact", "not run")]
    return bool(filled) and all(_NUMBER.match(cell) for cell in filled)


def prose(text: str) -> str:
    """Convert *emphasis* and `code` from Markdown to HTML."""
    text = re.sub(r"\*(.+?)\*", r"<em>\1</em>", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def verdict(printed: str | None, ours: Sequence[float], preset: Preset, *, lower_is_better: bool) -> str:
    """Compare a printed number with ours, one per seed and not finite where a run diverged, by `RULE`."""
    if not ours:
        return "not run"
    if not (ours := _finite(ours)):
        return "diverged"
    if preset == "quick":
        return "no verdict"
    if printed is None:
        return "not printed"
    if len(ours) < _MIN_SEEDS:
        return "too few seeds"
    low, high = _interval(ours, logarithmic=lower_is_better)
    half = 0.5 * 10.0 ** int(Decimal(printed).as_tuple().exponent)
    below, above = high < float(printed) - half, low > float(printed) + half
    if not (below or above):
        return "inside the spread"
    return "better" if below == lower_is_better else "worse"


def spread(ours: Sequence[float], digits: str) -> str:
    """The mean and standard deviation over the seeds that did not diverge, and how many diverged."""
    if not ours:
        return MISSING
    finite = _finite(ours)
    if not finite:
        return "diverged"
    deviation = f" ± {statistics.stdev(finite):{digits}}" if len(finite) > 1 else ""
    diverged = f" ({len(ours) - len(finite)} diverged)" if len(finite) < len(ours) else ""
    return f"{statistics.fmean(finite):{digits}}{deviation}{diverged}"


def _finite(ours: Sequence[float]) -> list[float]:
    return [value for value in ours if math.isfinite(value)]


def _interval(ours: Sequence[float], *, logarithmic: bool) -> tuple[float, float]:
    """The 95 % prediction interval for one more run."""
    from scipy.special import stdtrit  # the quantiles of Student's t; scipy.stats takes a second to import

    n = len(ours)
    values = [math.log(max(value, 1e-300)) for value in ours] if logarithmic else list(ours)
    half_width = float(stdtrit(n - 1, 0.975)) * statistics.stdev(values) * math.sqrt(1 + 1 / n)
    ends = statistics.fmean(values) - half_width, statistics.fmean(values) + half_width
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# LaTeX's special characters, and symbols that it writes as commands.
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
