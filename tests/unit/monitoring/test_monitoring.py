"""The alert rules and the dashboard ask for what is served, and Prometheus' own tool takes them."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.api.metrics import FAMILIES

ROOT = Path(__file__).parents[3]
RULES = ROOT / "monitoring" / "rules" / "dcos-tensorflow.yml"
DASHBOARD = ROOT / "monitoring" / "dashboards" / "dcos-tensorflow.json"
ALERTS = Path(__file__).parent / "alerts.yml"
PROMTOOL = shutil.which("promtool") or shutil.which(
    "promtool", path=str(ROOT / "build" / "promtool" / "usr" / "bin")
)

#: Each histogram is asked for by these.
_OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")

needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="no promtool on the PATH (tests/get_promtool.sh gets Debian's)"
)


def promtool(*arguments: str | Path) -> None:
    assert PROMTOOL is not None
    ran = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def expressions() -> Iterator[str]:
    """Yield all that the dashboard asks for."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (annotation["expr"] for annotation in dashboard["annotations"]["list"])


def filled_in(expression: str) -> str:
    """Return what Grafana asks Prometheus for."""
    return expression.replace("$service", ".*").replace("$__rate_interval", "1m")


def names_in(text: str) -> set[str]:
    """Return what looks like the name of a metric of ours."""
    beginnings = {name.split("_")[0] for name in FAMILIES}
    words = re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", text)
    return {word for word in words if word.split("_")[0] in beginnings}


def served() -> set[str]:
    histograms = [n for n, family in FAMILIES.items() if family.kind == "histogram"]
    return {
        *(n for n, family in FAMILIES.items() if family.kind != "histogram"),
        *(n + end for n in histograms for end in _OF_A_HISTOGRAM),
    }


def rules() -> str:
    return "\n".join(re.findall(r"expr:((?: \|\n +)?.+)", RULES.read_text()))


@needs_promtool
def test_prometheus_takes_the_rules() -> None:
    promtool("check", "rules", RULES)


@needs_promtool
def test_each_alert_fires_when_it_should_and_not_before() -> None:
    promtool("test", "rules", ALERTS)


def test_no_alert_is_untested() -> None:
    alerts = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    assert alerts == set(re.findall(r"alertname: (\w+)\n +exp_alerts", ALERTS.read_text()))


@needs_promtool
def test_prometheus_understands_the_dashboard(tmp_path: Path) -> None:
    asked = [{"record": f"panel:{n}", "expr": filled_in(e)} for n, e in enumerate(expressions())]
    # JSON is YAML.
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": asked}]}))
    promtool("check", "rules", file)


@needs_promtool
def test_prometheus_takes_the_documents_scrape_configuration(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "metrics.md").read_text()
    file = tmp_path / "prometheus.yml"
    file.write_text(re.findall(r"```yaml\n(.*?)```", document, re.DOTALL)[0])
    promtool("check", "config", "--syntax-only", file)


def test_the_dashboard_asks_for_what_is_served() -> None:
    asked = set().union(*map(names_in, expressions()))
    assert asked
    assert asked - served() == set()


def test_the_rules_ask_for_what_is_served() -> None:
    asked = names_in(rules())
    assert asked
    assert asked - served() == set()


def test_a_label_of_the_dashboard_is_one_that_its_metric_has() -> None:
    known = {"service", "le", *(label for family in FAMILIES.values() for label in family.labels)}
    grouped = [by for e in expressions() for by in re.findall(r"by \(([^)]*)\)", e)]
    named = {label.strip() for by in grouped for label in by.split(",")}
    assert named - known == set()


def test_every_panel_of_the_dashboard_has_its_own_place() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        columns, rows = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        for place in itertools.product(columns, rows):
            assert taken.setdefault(place, panel["title"]) == panel["title"]
    assert max(column for column, _ in taken) < 24
