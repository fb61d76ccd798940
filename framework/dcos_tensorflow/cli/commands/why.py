"""``why``: what a job waits for."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.wording import table, untold


@click.command()
@asks_about()
def why(asked: Asked) -> int:
    """Explain why a job waits, per task and per offer."""
    service = asked.service()
    found = service.connect().get("/v1/why")
    if asked.as_json:
        show_json(found)
        return 0
    if found["not_updated"]:
        say(f"{service.name}: {found['not_updated']}")
    say(f"{service.name} is {found['phase']}: {found['why']}")
    if not found["registered"]:
        say("The scheduler is not registered with a Mesos master.")
    for wait in found.get("waits", ()):
        say(f"  {wait['told']}")
    waits = [
        (task, untold(str(each["why"]), [found["why"]])) for task, each in found["tasks"].items()
    ]
    say_lines(table([(task, why) for task, why in waits if why]))
    say_lines(
        table([(task, p["why"]) for task, problems in found["storage"].items() for p in problems])
    )
    for who, told in found.get("machines", {}).items():
        say(f"  no machine is bought for {who}: {told}")
    seen: set[str] = set()
    for verdict in found["offers"]["handed_back"]:
        line = f"offer of {verdict['offer']['hostname']}: {'; '.join(verdict['explanation'])}"
        if line not in seen:
            seen.add(line)
            say(f"  {line}")
    for silent in found["silent_agents"]:
        say(f"  {silent['told']}")
    return 0
