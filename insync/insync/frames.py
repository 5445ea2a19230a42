"""Pages in notebooks: a whole offline page stands in a frame of its own, apart from the notebook's page."""

from __future__ import annotations

import base64
from html import escape

HEIGHT = 640
"""Pixels."""


def frame(page: str, title: str) -> str:
    """A page as a frame that a click opens, whose text is its address: nothing is asked for, and `#...` stays in it.

    The frame may run the page's own script and no more: it sees neither the notebook nor what a browser keeps. A frame
    with `srcdoc` will not do, for its address is the notebook's: the page could not note there which step is shown.
    """
    data = base64.b64encode(page.encode()).decode()
    return (
        f"<details><summary>the page: {escape(title)}</summary>"
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" src="data:text/html;charset=utf-8;base64,{data}" '
        f'style="width:100%;height:{HEIGHT}px;border:1px solid rgba(128,128,128,0.4)"></iframe></details>'
    )


def whole_page(part: str, title: str) -> str:
    """A part of a page as a page, which may load nothing."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{escape(title)}</title>\n</head>\n'
        f'<body style="font-family:system-ui,sans-serif">\n{part}\n</body>\n</html>\n'
    )
