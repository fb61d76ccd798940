"""The curves of a training as a drawing."""

from xml.etree import ElementTree

from dcos_tensorflow.client.snapshot import TaskLine
from dcos_tensorflow.estimator.notebook_curves import NotebookCurves

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*told: TaskLine) -> list[ElementTree.Element]:
    curves = NotebookCurves()
    for task in told:
        curves.add(task)
    return list(ElementTree.fromstring(f"<p>{curves.html(None)}</p>"))


def test_there_is_a_chart_for_each_metric_and_a_line_for_each_task():
    told = [
        TaskLine(name, "running", step=step, loss=1 / step, metrics={"auc": step / 10})
        for name in ("worker-0", "worker-1")
        for step in (1, 2, 3)
    ]
    charts = drawn(*told)
    assert [chart.findall(f"{SVG}text")[0].text for chart in charts] == ["loss", "auc"]
    assert [len(chart.findall(f"{SVG}polyline")) for chart in charts] == [2, 2]
    assert charts[0].find(f"{SVG}title").text == "worker-0, worker-1"


def test_the_numbers_at_the_axes_are_whole_however_long_they_are():
    values = (1.2345678e-7, 1.2345679e-7, 1.234568e-7)
    (chart,) = drawn(
        *(TaskLine("w", "running", step=n * 10_000_000, loss=v) for n, v in enumerate(values))
    )
    marks = chart.findall(f"{SVG}text")[1:]
    assert len(marks) >= 4
    for mark in marks:
        width = 6.0 * len(mark.text)
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[mark.get("text-anchor")] * width
        begins = float(mark.get("x")) - before
        assert 0 <= begins <= begins + width <= 320, mark.text


def test_a_falling_loss_falls():
    (chart,) = drawn(*(TaskLine("worker-0", "running", step=n, loss=10.0 - n) for n in range(3)))
    points = chart.find(f"{SVG}polyline").get("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights)


def test_nothing_is_drawn_of_a_single_point_nor_of_what_is_no_number():
    assert drawn(TaskLine("worker-0", "running", step=1, loss=1.0)) == []
    assert drawn(*(TaskLine("w", "running", step=n, loss=float("nan")) for n in range(3))) == []


def test_a_long_training_is_drawn_with_fewer_points():
    (chart,) = drawn(*(TaskLine("w", "running", step=n, loss=1.0 * n) for n in range(5000)))
    points = chart.find(f"{SVG}polyline").get("points").split()
    assert 250 <= len(points) <= 500


def test_a_name_is_no_markup():
    told = [TaskLine("w", "running", step=n, metrics={"<b>&": 1.0 * n}) for n in range(2)]
    assert drawn(*told)[0].findall(f"{SVG}text")[0].text == "<b>&"
