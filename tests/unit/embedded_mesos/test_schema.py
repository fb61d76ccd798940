"""JSON becomes a call as in Mesos, or is refused with its words."""

import pytest

from embedded_mesos.master.calls.schema import ConversionError, convert


def test_all_missing_fields_are_named() -> None:
    call = {"type": "SUBSCRIBE", "subscribe": {"framework_info": {}}}
    with pytest.raises(ConversionError, match=r"framework_info.user, .*framework_info.name"):
        convert(call)


def test_unknown_fields_and_enum_values_are_ignored_and_null_is_unset() -> None:
    call = convert({"type": "NO_SUCH", "framework_id": None, "nonsense": {"a": 1}})
    assert "type" not in call
    assert "framework_id" not in call


def test_numbers_may_be_text() -> None:
    call = convert({"type": "DECLINE", "decline": {"filters": {"refuse_seconds": "2.5"}}})
    assert call["decline"]["filters"]["refuse_seconds"] == 2.5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"uuid": "!!"}, "base64"),
        ({"uuid": {"value": "AAAA"}}, "Not expecting a JSON object for field 'uuid'"),
    ],
)
def test_bytes_are_base64(body: dict[str, object], message: str) -> None:
    acknowledge = {"agent_id": {"value": "a"}, "task_id": {"value": "t"}, **body}
    with pytest.raises(ConversionError, match=message):
        convert({"type": "ACKNOWLEDGE", "acknowledge": acknowledge})
