"""`uniphase report`: the results of the experiments beside those of the paper."""

from typing import Annotated

from cyclopts import Parameter

from .options import STORE, Store


def report(*, store: Store = STORE, output: Annotated[str, Parameter(alias="-o")] = "uniphase-report") -> None:
    """Write tables and figures of all stored runs, beside those of the paper.

    For example:

        uniphase report
        uniphase report --store /shared/lab -o results

    Parameters
    ----------
    output
        Directory for report.md, report.html (one file with everything in it), figures, LaTeX tables, and the records
        as CSV, as Parquet if the extra `lab` is installed, and as JSON lines, from which the report can be made again.
    """
    from ..lab.report import write_report
    from ..lab.store import Store

    paths = write_report(Store(store), output)
    print(f"wrote {', '.join(map(str, paths))}")
