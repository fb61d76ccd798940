"""Says where a page for a browser is and what it asks for: a service's, an embedded cluster's."""

from __future__ import annotations

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import complain, say, show_json
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Page:
    """A page for a browser."""

    url: str
    #: What the page asks for; empty for none.
    token: str = ""
    #: How a person calls the token.
    asks_for: str = ""


def shown(page: Page, *, as_json: bool, with_token: bool = False, in_browser: bool = False) -> int:
    """Print the page's address, or its token, and open it in a browser where that is wanted.

    Raises CliError for a token that the page does not ask for, and without a browser.
    """
    if as_json:
        show_json({"url": page.url, **({"token": page.token} if with_token else {})})
    elif with_token:
        if not page.token:
            raise CliError(f"The page at {page.url} asks for no token.")
        say(page.token)
    else:
        say(page.url)
        if page.token:
            complain(f"The page asks for {page.asks_for}; to print it, add --token.")
    if in_browser:
        import webbrowser

        if not webbrowser.open(page.url):
            raise CliError(f"No browser could be opened; the address is {page.url}.")
    return 0
