"""A service as a package would install it: answers ``/v1`` as a recording says.

Run by the supervisor, with ``FRAMEWORK_NAME`` and ``ANSWERS`` in its environment. ``ANSWERS`` is a
JSON file: ``"METHOD TARGET"`` -> ``[status, content type, body text]``. With ``SDK_UNINSTALL`` it
is a scheduler that has let go of everything, as soon as no file ``HOLD`` is there any more.
"""

import http.server
import json
import os
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        status, kind, text = self.found()
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def found(self):
        if self.path == "/v1/health":
            return 200, "application/json", "{}"
        if self.path == "/environment":
            return 200, "application/json", json.dumps(dict(os.environ))
        if "SDK_UNINSTALL" in os.environ and self.path == "/v1/plans/deploy":
            held = os.path.exists(os.environ.get("HOLD", "/nonexistent"))
            return 202 if held else 200, "application/json", "{}"
        answers = {}
        if os.environ["ANSWERS"]:
            with open(os.environ["ANSWERS"]) as file:
                answers = json.load(file)
        found = answers.get(f"{self.command} {self.path}")
        if found is None and self.path == "/v1/state/frameworkId":
            return 200, "application/json", json.dumps([os.environ["FRAMEWORK_NAME"] + "-id"])
        return found or (404, "text/plain; charset=utf-8", "Element not found")

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *args):
        pass


print("line 1")
print("line 2", flush=True)
print("no errors", file=sys.stderr, flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT0"])), Handler).serve_forever()
