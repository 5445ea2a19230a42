"""The last look at a cluster over HTTP: the page for people, metrics for Prometheus, JSON for programs.

    GET /             the page, which stays while the cluster does not answer, and says since when
    GET /metrics      the text format of Prometheus
    GET /audit.json   what --json writes

It only answers GET and HEAD, knows no names of files, and has no login: bind it where only those come who may see it.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import attrs

from insync_cli import terminal
from insync_cli.clusters import audit_metrics, audit_text
from insync_cli.clusters.audit_page import TIME_MARK, page_of
from insync_cli.clusters.audit_short import exit_code
from insync_cli.exits import Exit, UsageError
from isr_audit.report import Audit

HTML: Final = "text/html; charset=utf-8"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
PATIENCE_S: Final = 10.0
"""A client that says nothing for so long is let go."""
MOST_PORT: Final = 65_535


def address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, or `:PORT` for this machine alone; an IPv6 address stands in brackets."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= MOST_PORT):
        raise argparse.ArgumentTypeError(f"HOST:PORT such as 127.0.0.1:9700, not {text}")
    return host.strip("[]") or "127.0.0.1", int(port)


@attrs.define
class Board:
    """What is http_server: texts by path, with their types. Written by the audit, read by the server's threads."""

    texts: dict[str, tuple[str, bytes]] = attrs.field(factory=dict[str, tuple[str, bytes]])
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    page: str = ""
    key: str = ""
    moment: str = ""

    def publish(self, audit: Audit) -> None:
        """The newest look. A page is made only where it would say something else than the one that is there."""
        code = exit_code(audit)
        document = terminal.json_text(audit_text.document(audit))
        if self.key != document:
            self.page, self.key = page_of(audit), document
        self.moment = time.strftime("%Y-%m-%d %H:%M:%S")
        self._put(f"Seen at {self.moment}.", audit_metrics.metrics(audit, code), document)

    def fail(self, reason: str, code: Exit) -> None:
        """The cluster did not answer: the page stays and says so, metrics tell no more than that, and JSON is none."""
        last = f"What stands here was seen at {self.moment}." if self.moment else "Nothing was seen yet."
        sentence = f"No answer at {time.strftime('%Y-%m-%d %H:%M:%S')}: {reason}. {last}"
        self._put(sentence, audit_metrics.outcome(code), None)

    def _put(self, sentence: str, metrics: str, document: str | None) -> None:
        note = f'<p class="quiet" role="status">{escape(sentence)}</p>'
        page = (
            self.page.replace(TIME_MARK, note, 1) if self.page else f"<!doctype html><title>insync audit</title>{note}"
        )
        texts = {"/": (HTML, page.encode()), "/metrics": (PROMETHEUS, metrics.encode())}
        with self.lock:
            self.texts = {**texts, **({"/audit.json": (JSON, document.encode())} if document is not None else {})}

    def read(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """The answer to a request."""
        with self.lock:
            texts = self.texts
        if path in texts:
            return (HTTPStatus.OK, *texts[path])
        if path in ("/", "/metrics", "/audit.json"):
            return HTTPStatus.SERVICE_UNAVAILABLE, TEXT, b"the cluster has not answered yet\n"
        return HTTPStatus.NOT_FOUND, TEXT, b"there are /, /metrics and /audit.json\n"


@contextmanager
def http_server(board: Board, where: tuple[str, int]) -> Generator[str]:
    """Serve the board until the end of the block, which is given the URL; UsageError where the address is taken."""

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, body = board.read(self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes are no news."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = _family(where[0])

    try:
        server = Server(where, Handler)
    except OSError as problem:
        raise UsageError(f"cannot serve at {where[0]}:{where[1]}: {terminal.reason(problem)}") from None
    host, port = str(server.server_address[0]), server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, name="audit-server", daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


def _family(host: str) -> int:
    import socket

    return socket.AF_INET6 if ":" in host else socket.AF_INET
