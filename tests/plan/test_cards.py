"""Rigs as plans see them: real ones, ones in words, ones from files."""

from pathlib import Path

import pytest

from redline.catalog.types import Catalog
from redline.errors import AccessError, UsageError
from redline.plan.cards import (
    CONTEXT_BYTES,
    WSL_BYTES,
    cards_of,
    describe_cards,
    find_hardware,
    host_with,
    rig_of_words,
)
from redline.plan.rigfile import read_rig
from redline.record.codec import jsonable
from redline.rig.types import Gpu

GIB = 2**30
MIB = 2**20


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("3090", "rtx-3090"),
        ("RTX 3090", "rtx-3090"),
        ("rtx3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("A6000", "rtx-a6000"),
        ("H200", "h200"),
        ("voodoo", None),
        ("", None),
    ],
)
def test_names_that_people_say(shapes: Catalog, name: str, found: str | None) -> None:
    hardware = find_hardware(shapes, name)
    assert (hardware.id if hardware else None) == found


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("2x3090", ["3090", "3090"]),
        ("1x5090+1x3090", ["5090", "3090"]),
        ("h200", ["H200"]),
        ("2xA6000, 1x4090", ["A6000", "A6000", "4090"]),
        ("0x3090", []),
    ],
)
def test_rigs_in_words(shapes: Catalog, words: str, names: list[str]) -> None:
    rig = rig_of_words(shapes, words)
    assert [gpu.name.split()[-1] for gpu in rig.gpus] == names
    assert [gpu.index for gpu in rig.gpus] == list(range(len(names)))


@pytest.mark.parametrize("words", ["2xvoodoo", "3090x2", "", "999x3090", "-1x3090", "2x", "65x3090", "2x3090,"])
def test_absurd_words_are_refused(shapes: Catalog, words: str) -> None:
    with pytest.raises(UsageError):
        rig_of_words(shapes, words)


def test_total_is_what_torch_sees(shapes: Catalog) -> None:
    (card,) = cards_of(shapes, rig_of_words(shapes, "1x3090"))
    assert card.total_bytes / GIB == pytest.approx(23.56, abs=0.001)
    assert card.free_bytes == card.total_bytes - CONTEXT_BYTES


def gpu(name: str, total_mib: int, free_mib: int) -> Gpu:
    return Gpu(
        index=0,
        name=name,
        uuid="u",
        memory_total_bytes=total_mib * MIB,
        memory_free_bytes=free_mib * MIB,
        compute="8.6",
    )


def test_what_others_hold_is_taken_off(shapes: Catalog) -> None:
    idle, busy = (
        cards_of(shapes, host_with((gpu("NVIDIA GeForce RTX 3090", 24576, free),)))[0] for free in (24200, 20000)
    )
    assert idle.free_bytes - busy.free_bytes == pytest.approx(4200 * MIB, abs=500 * MIB)
    assert 0 <= cards_of(shapes, host_with((gpu("NVIDIA GeForce RTX 3090", 24576, 0),)))[0].free_bytes < GIB


def test_an_unlisted_gpu_is_planned_from_the_driver(shapes: Catalog) -> None:
    (card,) = cards_of(shapes, host_with((gpu("NVIDIA Other", 16384, 16384),)))
    assert card.hardware is None
    assert card.total_bytes < 16384 * MIB
    assert "no record" in card.basis


def test_wsl_keeps_some(shapes: Catalog) -> None:
    rig = rig_of_words(shapes, "1x3090")
    plain, wsl = (cards_of(shapes, host_with(rig.gpus, wsl=flag))[0] for flag in (False, True))
    assert plain.free_bytes - wsl.free_bytes == WSL_BYTES


def test_words_for_cards(shapes: Catalog) -> None:
    assert describe_cards(cards_of(shapes, rig_of_words(shapes, "2x3090"))) == "2x NVIDIA GeForce RTX 3090"
    assert describe_cards(()) == "no GPU"


def test_a_rig_file(shapes: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "rig.yaml"
    file.write_text(
        "gpus:\n  - {name: rtx3090, count: 2, free_gib: 20.5}\n"
        "  - {name: mine, total_gib: 16, compute: '8.9'}\nwsl: true\n"
    )
    rig = read_rig(shapes, file)
    assert [g.name for g in rig.gpus] == ["NVIDIA GeForce RTX 3090"] * 2 + ["mine"]
    assert rig.gpus[1].memory_free_bytes == round(20.5 * GIB)
    assert rig.wsl


def test_a_saved_rig_is_read_back(shapes: Catalog, tmp_path: Path) -> None:
    import json

    rig = rig_of_words(shapes, "1x5090+1x3090")
    file = tmp_path / "rig.json"
    file.write_text(json.dumps(jsonable(rig)))
    assert read_rig(shapes, file) == rig


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpus: 3",
        "{",
        "gpus:\n  - {name: voodoo}",
        "gpus:\n  - {name: rtx3090, free_gib: 99}",
        "gpus:\n  - {name: rtx3090, count: -1}",
        "gpus:\n  - {name: rtx3090, free_gib: -1}",
        "gpus:\n  - {name: x, total_gib: 0}",
        "more: 1",
        "gpus:\n  - {name: a}\n    b",
    ],
)
def test_a_wrong_rig_file_is_said(shapes: Catalog, tmp_path: Path, text: str) -> None:
    file = tmp_path / "rig.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"rig\.yaml"):
        read_rig(shapes, file)


def test_a_rig_file_that_is_not_there(shapes: Catalog, tmp_path: Path) -> None:
    with pytest.raises(AccessError):
        read_rig(shapes, tmp_path / "none.yaml")
