"""Names of stored values, and in which order an erase removes them."""

from dcos_tensorflow.state.layout import erase_order


def test_an_erase_begins_with_what_makes_a_service_and_ends_with_the_service() -> None:
    """Whatever a crash leaves is no service, and says to the last that it is being uninstalled."""
    values = ["Properties/service", "ConfigTarget", "Tasks/ps-0/TaskInfo", "Properties/a", "Plans"]
    order = sorted([*values, "FrameworkID"], key=erase_order)
    assert order[0] == "ConfigTarget"
    assert order[-2:] == ["FrameworkID", "Properties/service"]
