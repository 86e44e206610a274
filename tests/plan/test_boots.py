"""Recorded boots: blocks exact where they log them, and predicted end to end without being looked at."""

import statistics
from dataclasses import replace

import pytest

from redline.catalog.types import Catalog
from redline.plan.boots import calibrate, check_boot, measured_blocks, observe, predict_boot
from redline.plan.geometry import boots
from redline.plan.inputs import UnknownPlanError

NOT_STOCK = {"3090x2-q36-int4-mtp3-104", "syv-ai-7-dual"}


def test_every_logged_pool_is_an_integer_number_of_blocks(shapes: Catalog) -> None:
    checks = {boot.id: check_boot(shapes, boot) for boot in shapes.boots.values()}
    wrong = {name for name, check in checks.items() if check.exact is False}
    assert wrong == NOT_STOCK
    assert sum(check.exact is True for check in checks.values()) >= 30


def test_the_boots_on_h200_are_reproduced(shapes: Catalog) -> None:
    rows = [boot for boot in shapes.boots.values() if boot.hardware == "h200"]
    assert len(rows) >= 39
    assert {boot.tensor_parallel for boot in rows} == {1, 2}
    for boot in rows:
        check = check_boot(shapes, boot)
        assert check.geometry.block_tokens == boot.block_tokens
        assert check.blocks == boot.blocks
        assert check.low_blocks is not None
        assert check.high_blocks is not None
        assert check.low_blocks <= (check.blocks or 0) <= check.high_blocks


def test_bytes_read_from_inside_allow_one_number_of_blocks(shapes: Catalog) -> None:
    rows = [boot for boot in shapes.boots.values() if boot.available_bytes is not None]
    assert len(rows) >= 29
    for boot in rows:
        check = check_boot(shapes, boot)
        assert check.low_blocks == check.high_blocks == check.blocks == boot.blocks, boot.id
    one_less = replace(rows[0], available_bytes=(rows[0].available_bytes or 0) - 20 * 2**20)
    assert check_boot(shapes, one_less).exact is False


def test_the_refused_boot_is_refused(shapes: Catalog) -> None:
    boot = shapes.boots["5090x1-q36-nvfp4-617"]
    check = check_boot(shapes, boot)
    assert (check.low_blocks, check.high_blocks, check.need_blocks) == (75, 75, 78)
    assert not boots(check.geometry, 75, boot.max_model_len)


def test_a_boot_with_other_tokens_would_not_be_exact(shapes: Catalog) -> None:
    boot = shapes.boots["5090x2-ultramax"]
    assert boot.pool_tokens is not None
    assert check_boot(shapes, replace(boot, pool_tokens=boot.pool_tokens + 1)).exact is False
    assert check_boot(shapes, replace(boot, available_gib=11.5)).exact is False


def test_end_to_end_without_the_row_itself(shapes: Catalog) -> None:
    errors = []
    for boot in shapes.boots.values():
        found = predict_boot(shapes, boot, calibrate(shapes, without=[boot.id]))
        if found:
            errors.append(abs(found.error))
    assert len(errors) >= 30
    assert statistics.median(errors) <= 0.015
    assert max(errors) <= 0.04


def test_the_unexplained_boot_is_shown_and_not_fitted(shapes: Catalog) -> None:
    boot = shapes.boots["3090x2-int4-mtp4-v0.27.1"]
    assert observe(shapes, boot) is None
    found = predict_boot(shapes, replace(boot, held_out=""), calibrate(shapes))
    assert found is not None
    assert found.error > 0.1


def test_what_does_not_say_enough_is_no_observation(shapes: Catalog) -> None:
    boot = shapes.boots["5090x2-ultramax"]
    assert observe(shapes, boot) is not None
    assert observe(shapes, replace(boot, gpu_memory_utilization=None)) is None
    assert observe(shapes, replace(boot, weights_bytes=None)) is None
    assert observe(shapes, replace(boot, model="another")) is None
    assert observe(shapes, replace(boot, available_gib=None, pool_tokens=None)) is None
    assert measured_blocks(check_boot(shapes, replace(boot, available_gib=None, pool_tokens=None))) is None


def test_unknown_hardware_and_versions_are_said(shapes: Catalog) -> None:
    boot = shapes.boots["5090x2-ultramax"]
    with pytest.raises(UnknownPlanError, match="hardware"):
        check_boot(shapes, replace(boot, hardware="voodoo2"))
    with pytest.raises(UnknownPlanError, match=r"0\.99\.0 is not known"):
        check_boot(shapes, replace(boot, engine_version="0.99.0"))


def test_a_user_can_add_a_boot_and_move_the_fit(shapes: Catalog) -> None:
    boot = replace(shapes.boots["3090x2-ultrafast"], id="mine", pool_tokens=int(1000 / 1102 * 204800))
    more = replace(shapes, boots={**shapes.boots, "mine": boot})
    usual, moved = (calibrate(c).values_gib for c in (shapes, more))
    assert usual != moved
