"""An engine that is well by its health page and whose /metrics hangs, is HTML, never ends, or counts NaN: PORT MANNER."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, MANNER = int(sys.argv[1]), sys.argv[2]
NAN = b'vllm:num_requests_running{engine="0"} NaN\nvllm:num_requests_waiting{engine="0"} 0\n'
MEGABYTE = b"# " + b"x" * (1 << 20) + b"\n"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/metrics":
            self.answer(b"ok")
        elif MANNER == "hang":
            threading.Event().wait()
        elif MANNER == "html":
            self.answer(b"<!doctype html><title>Sign in</title>")
        elif MANNER == "nan":
            self.answer(NAN)
        else:
            self.answer(MEGABYTE, times=200)

    def answer(self, body: bytes, times: int = 1) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(times):
                self.wfile.write(body)
        except OSError:
            return  # whoever asked has had enough

    def log_message(self, *_: object) -> None:
        """Nothing: what it says is not looked at."""


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
server.daemon_threads = True
server.serve_forever()
