"""HTML as a browser sees it: its tags and its words."""

import base64
import io
from html.parser import HTMLParser

import numpy as np
from PIL import Image

SCRIPT = "<script>alert('a')</script>"
_VOID = {"img", "path", "rect"}


class Seen(HTMLParser):
    """What is in a piece of HTML, in which every tag is closed."""

    def __init__(self, html: str):
        HTMLParser.__init__(self)
        self.tags: list[str] = []
        self.words: list[str] = []
        self.images: list[np.ndarray] = []
        self.paths: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        entries = dict(attrs)
        if tag == "img":
            kind, _, data = entries["src"].partition(",")
            assert kind == "data:image/png;base64"
            self.images.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))))
        if tag == "path":
            self.paths.append(entries["d"])
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
