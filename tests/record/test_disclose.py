"""What of a record may leave the machine: only what the allow-list names, in the shape it names."""

import pytest

from redline.record.disclose import disclose
from redline.record.identity import make_identity
from redline.record.redact import Redactor


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(make_identity(["marta"], ["attic-rig"], ["/home/marta"]))


def test_named_fields_of_the_right_shape_pass(redactor: Redactor) -> None:
    value = {"slug": "vllm/qwen38-27b-dual-ultrafast", "status": "pass", "n": 3, "rate": 0.5, "ok": True, "none": None}
    assert disclose(value, redactor) == value


@pytest.mark.parametrize("name", ["slug", "status", "run_id", "engine_version", "origin", "command", "digest"])
def test_a_named_field_of_another_shape_is_free_text(redactor: Redactor, name: str) -> None:
    assert disclose({name: "ran by marta \x1b[31m"}, redactor) == {name: "ran by <user> "}


def test_free_text_is_redacted_at_any_depth(redactor: Redactor) -> None:
    value = {"results": [{"evidence": "see /home/marta/x", "metrics": {"at 10.1.2.3": 1.0}}]}
    shown = disclose(value, redactor)
    assert shown == {"results": [{"evidence": "see ~/x", "metrics": {"at <ip-1>": 1.0}}]}


def test_argv_is_redacted_as_a_command_line(redactor: Redactor) -> None:
    assert disclose({"argv": ["x", "--api-key", "plain", "/home/marta/m"]}, redactor) == {
        "argv": ["x", "--api-key", "<secret>", "~/m"]
    }
