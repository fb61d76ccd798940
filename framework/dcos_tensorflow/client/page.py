"""Says where a page for a browser is and what it asks for: a service's, an embedded cluster's."""

from __future__ import annotations

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import complain, say, show_json


def show_page(
    url: str, token: str, *, asks_for: str, as_json: bool, with_token: bool, in_browser: bool
) -> int:
    """Print the address, or the token, in words ``asks_for``. Raises CliError without a browser."""
    if as_json:
        show_json({"url": url, **({"token": token} if with_token else {})})
    elif with_token:
        if not token:
            raise CliError(f"The page at {url} asks for no token.")
        say(token)
    else:
        say(url)
        if token:
            complain(f"The page asks for {asks_for}; to print it, add --token.")
    if in_browser:
        import webbrowser

        if not webbrowser.open(url):
            raise CliError(f"No browser could be opened; the address is {url}.")
    return 0
