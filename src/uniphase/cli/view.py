"""`uniphase view`: a network's file as a page in the browser."""

import tempfile
import webbrowser
from pathlib import Path

from .options import NetworkPath


def view(file: NetworkPath, /) -> None:
    """Show the field of a network in the browser: zoom in, play, compare.

    The page is a temporary file; `uniphase export` writes one to keep.

    For example:

        uniphase view photo.uniphase
    """
    from ..export.targets import export_network

    page = Path(tempfile.mkdtemp(prefix="uniphase-"), f"{Path(file).stem}.html")
    try:
        export_network(file, page)
    except BaseException:
        page.parent.rmdir()
        raise
    opened = webbrowser.open(page.as_uri())
    print(f"{'opened' if opened else 'no browser was found; open'} {page}")
