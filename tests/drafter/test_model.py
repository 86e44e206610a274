"""The drafter in torch. Not in CI, which has no torch: `pytest tests/drafter` where torch and tokenizers are."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from drafter.data import answer  # noqa: E402 -- after the check that torch is there
from drafter.evaluate import acceptance  # noqa: E402
from drafter.learn import FLOOR, Student, Words, earned, learn, rate  # noqa: E402
from drafter.load import drafter_from_gguf  # noqa: E402
from drafter.model import Drafter, q4_0, start_from_target  # noqa: E402
from drafter.target import Target  # noqa: E402
from drafter.train import make_optimizers  # noqa: E402
from tests.drafter.conftest import TINY  # noqa: E402


@pytest.fixture(scope="module")
def tiny(target: Path) -> Target:
    torch.manual_seed(1)
    return Target(target, torch.device("cpu"), torch.float32)


def hidden_of(drafter: Drafter, tiny: Target, features: Any, anchors: list[int]) -> Any:
    places = torch.tensor([anchors])
    return drafter(features, places, torch.full_like(places, 40), tiny.embedding)


def test_a_block_sees_nothing_from_its_anchor_on(tiny: Target) -> None:
    drafter, features = Drafter(TINY), torch.randn(1, 20, 192)
    changed = features.clone()
    changed[:, 9:] += 1
    first, second = (hidden_of(drafter, tiny, values, [9]) for values in (features, changed))
    assert torch.allclose(first, second)
    changed[:, 8] += 1
    assert not torch.allclose(first, hidden_of(drafter, tiny, changed, [9]))


def test_blocks_do_not_see_each_other(tiny: Target) -> None:
    drafter, features = Drafter(TINY), torch.randn(1, 20, 192)
    for part in drafter.layers:
        torch.nn.init.normal_(part.attention_conv.kernel_projection.weight)
    alone, together = hidden_of(drafter, tiny, features, [9]), hidden_of(drafter, tiny, features, [9, 12])
    assert torch.allclose(alone[0, 0], together[0, 0], atol=1e-5)


def test_what_lies_before_the_window_is_not_seen(tiny: Target) -> None:
    drafter, features = Drafter(TINY), torch.randn(1, 90, 192)
    changed = features.clone()
    changed[:, :10] += 1
    first, second = (hidden_of(drafter, tiny, values, [85]) for values in (features, changed))
    assert torch.allclose(first, second)


def test_convolutions_begin_as_the_identity() -> None:
    conv, x = Drafter(TINY).layers[0].attention_conv, torch.randn(1, 2, 4, 96)
    before, parts = conv.prepare(x)
    assert torch.equal(before, x)
    assert torch.equal(conv.finish(x, parts), x)


def test_rounding_is_ggufs() -> None:
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize, quantize

    values = torch.randn(6, 64)
    kind = GGMLQuantizationType.Q4_0
    assert torch.equal(q4_0(values), torch.from_numpy(dequantize(quantize(values.numpy(), kind), kind)))


def test_steps_say_what_reading_says(tiny: Target) -> None:
    cold = torch.zeros(2)
    texts = answer(tiny, [[7, 40, 41], [50, 51, 52, 53, 54]], 6, cold, cold.long(), 0)
    for row in range(2):
        start, end = int(texts.starts[row]), int(texts.ends[row])
        _, last = tiny.read(texts.tokens[row : row + 1, :end], ())
        assert (last[0] @ tiny.embedding.T).argmax(-1)[start - 1 : end - 1].tolist() == texts.tokens[
            row, start:end
        ].tolist()


def test_it_learns_and_what_it_learns_is_accepted(tiny: Target) -> None:
    torch.manual_seed(2)
    from drafter.data import with_features

    cold = torch.zeros(8)
    texts = answer(tiny, [[40 + n, 50, 60 + n] for n in range(8)], 24, cold, cold.long(), 0)
    whole = with_features(tiny, texts, TINY.taken)
    drafter = Drafter(TINY)
    start_from_target(drafter, tiny.weights, tiny.layers)
    student = Student("s", drafter, make_optimizers(drafter, fused=False))
    words = Words.draw(torch.arange(0, 512, 2), torch.arange(1, 512, 2), 256)
    before = acceptance(drafter, tiny, texts, None)["length"]
    for _ in range(60):
        drafter.zero_grad()
        learn(student, whole, torch.arange(8), 12, tiny, words, 64)
        for optimizer in student.optimizers:
            optimizer.step()
    after = acceptance(drafter.eval(), tiny, texts, None)["length"]
    assert after > before + 0.5


def test_a_sampled_head_scores_like_the_whole_one() -> None:
    torch.manual_seed(4)
    logits, common = torch.randn(4000), torch.arange(0, 4000, 2)
    rest, sums = torch.arange(1, 4000, 2), []
    for _ in range(200):
        words = Words.draw(common, rest, 200)
        assert torch.equal(words.places[words.ids], torch.arange(2200))
        sums.append((logits[words.ids] + words.shift).exp().sum())
    assert torch.stack(sums).mean() == pytest.approx(float(logits.exp().sum()), rel=0.01)


def test_a_position_counts_as_much_as_those_before_it_hold() -> None:
    lost = torch.tensor([[0.0, 0.7, 0.2, 3.0]], dtype=torch.float64)
    before = [1.0, 1.0, 0.49658530379140947, 0.4065696597405991]  # exp of minus the sum of what was lost before
    assert earned(lost)[0].tolist() == pytest.approx([FLOOR + (1 - FLOOR) * share for share in before])


def test_a_first_call_rises_holds_and_falls_and_a_later_one_only_falls() -> None:
    assert [rate(at, 0) for at in (0, 0.01, 0.02, 0.6, 1)] == pytest.approx([0, 0.5, 1, 1, 0.05])
    later = [rate(at, 1) for at in (0.03, 0.2, 0.5, 0.8, 1)]
    assert later == sorted(later, reverse=True)
    assert (later[0], later[-1]) == pytest.approx((0.4, 0.02))


def test_every_weight_has_one_optimizer() -> None:
    drafter = Drafter(TINY)
    held = [id(p) for o in make_optimizers(drafter, fused=False) for g in o.param_groups for p in g["params"]]
    assert sorted(held) == sorted(id(p) for p in drafter.parameters())


def test_a_file_is_the_drafter_again(drafter_file: Path) -> None:
    drafter, ids = drafter_from_gguf(drafter_file)
    assert ids.tolist() == list(range(0, 512, 2))
    assert drafter.shape.block == 4
