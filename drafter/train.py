"""Train drafters against a target: one resumable command that stops itself in time.

    python -m drafter.train TARGET.gguf --out FOLDER --state FOLDER --seconds 520 [--device cuda] [--toy]

It writes texts, trains on them, measures on held-out prompts, and leaves for each drafter a GGUF file, its checkpoint in
halves, and one line of metrics a minute. Run again with the same state folder it goes on with fresh texts.
"""

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from drafter import data, evaluate
from drafter.gguf_file import write_gguf
from drafter.model import Drafter, start_from_target
from drafter.shape import Shape
from drafter.target import Target

DECAY = 4.0  # a position's weight falls by e over so many: a later token counts only when the earlier ones held


@dataclass(slots=True)
class Student:
    """A drafter in training."""

    name: str
    drafter: Drafter
    optimizer: torch.optim.Optimizer
    peak: float


def position_weights(depth: int, device: torch.device) -> Tensor:
    """Return weights of the block's positions, summing to 1."""
    weights = torch.exp(-torch.arange(depth, device=device) / DECAY)
    return weights / weights.sum()


def learn(student: Student, texts: data.Texts, rows: Tensor, count: int, target: Target, chunk: int) -> dict[str, float]:
    """Accumulate gradients of one batch: cross-entropy of every slot, and the selector's choice among the candidates."""
    drafter, shape = student.drafter, student.drafter.shape
    tokens, starts, ends = texts.tokens[rows], texts.starts[rows], texts.ends[rows]
    span = (ends - 1 - starts).clamp_min(1)
    anchors = starts[:, None] + (torch.rand(len(rows), count, device=target.device) * span[:, None]).long()
    anchor_tokens = tokens.gather(1, anchors)
    assert texts.features is not None
    hidden = drafter(texts.features[rows], anchors, anchor_tokens, target.embedding)
    places = anchors[..., None] + 1 + torch.arange(shape.depth, device=target.device)
    valid = places < ends[:, None, None]
    labels = F.pad(tokens, (0, shape.block)).gather(1, places.flatten(1)).view_as(places)
    before = torch.cat((anchor_tokens[..., None], labels[..., :-1]), -1)
    weights = (position_weights(shape.depth, target.device) * valid).flatten()
    weights = weights / weights.sum().clamp_min(1e-6)
    flat = hidden[..., 1:, :].reshape(-1, shape.hidden)
    leaf = flat.detach().requires_grad_()
    labels, before = labels.flatten(), before.flatten()
    totals = {"head": 0.0, "selector": 0.0}
    for at in range(0, len(labels), chunk):
        part = slice(at, at + chunk)
        logits = F.linear(leaf[part], target.embedding)
        loss = (F.cross_entropy(logits.float(), labels[part], reduction="none") * weights[part]).sum()
        totals["head"] += float(loss.detach())
        if at < len(labels) // 3 + 1:  # the selector learns from a third of the anchors: finding candidates is slow
            choice = selector_loss(drafter, leaf[part], logits, labels[part], before[part], weights[part])
            totals["selector"] += 3 * float(choice.detach())
            loss = loss + 3 * choice
        loss.backward()
    assert leaf.grad is not None
    flat.backward(leaf.grad)
    return totals


def selector_loss(drafter: Drafter, hidden: Tensor, logits: Tensor, labels: Tensor, before: Tensor, weights: Tensor) -> Tensor:
    """Weighted cross-entropy of the true token among the candidates, where it is one of them."""
    candidates = logits.detach().topk(drafter.shape.top_k, -1).indices
    scores = logits.gather(1, candidates).float()
    scores = scores + drafter.candidate_selector.edges(hidden, before[:, None], candidates)[:, 0]
    is_true = candidates == labels[:, None]
    there = is_true.any(-1)
    lost = F.cross_entropy(scores, is_true.long().argmax(-1), reduction="none")
    return (lost * weights * there).sum()


def rate(progress: float, calls: int) -> float:
    """Learning rate as a share of its peak: warm up, hold, and fall to a twentieth in the last third of a call."""
    warm, height = (0.02, 1.0) if calls == 0 else (0.03, 0.7)
    if progress < warm:
        return height * progress / warm
    if progress < 0.6:
        return height
    return height * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - 0.6) / 0.4))))


def make_students(shapes: dict[str, Shape], target: Target, state: Path) -> tuple[list[Student], dict[str, Any]]:
    """Return the drafters to train, from the state folder where it has them, and what is noted beside them."""
    students, notes = [], {"calls": 0, "ids": None}
    if (state / "notes.json").is_file():
        notes = json.loads((state / "notes.json").read_text(encoding="utf-8"))
    for name, shape in shapes.items():
        torch.manual_seed(11)
        drafter = Drafter(shape)
        start_from_target(drafter, {k: v.float().cpu() for k, v in target.weights.items()}, target.layers)
        drafter.to(target.device)
        books = [p for n, p in drafter.named_parameters() if "codebook" in n]
        others = [p for n, p in drafter.named_parameters() if "codebook" not in n]
        groups = [{"params": others, "weight_decay": 0.01}, {"params": books, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=target.device.type == "cuda")
        saved = state / f"{name}.pt"
        if saved.is_file():
            loaded = torch.load(saved, map_location=target.device, weights_only=True)
            drafter.load_state_dict(loaded["drafter"])
            optimizer.load_state_dict(loaded["optimizer"])
        elif (state / f"{name}.gguf").is_file():  # only the file of an earlier call came back: go on from it
            from drafter.load import drafter_from_gguf

            drafter.load_state_dict(drafter_from_gguf(state / f"{name}.gguf")[0].state_dict())
            notes["calls"] = max(notes["calls"], 1)
        students.append(Student(name, drafter, optimizer, 1.2e-3))
    return students, notes


def save(students: list[Student], notes: dict[str, Any], state: Path) -> None:
    """Write the state folder; each file appears whole."""
    for student in students:
        held = {"drafter": student.drafter.state_dict(), "optimizer": student.optimizer.state_dict()}
        torch.save(held, state / f"{student.name}.pt.part")
        (state / f"{student.name}.pt.part").replace(state / f"{student.name}.pt")
    (state / "notes.json").write_text(json.dumps(notes), encoding="utf-8")


def shape_for(target: Target, layers: int) -> Shape:
    """Return a drafter's measures for a target; the served ones are what fits 12 MiB (docs/drafter.md)."""
    vocab, hidden = target.embedding.shape
    small = hidden < 272  # a toy: top_k 16 needs 272 channels
    return Shape(
        layers=layers,
        rank=32,
        top_k=8 if small else 16,
        draft_vocab=min(8192, vocab // 2),
        taken=(1, 2) if target.layers < 30 else (2, 11, 20, 29),
        hidden=hidden,
        heads=target.heads,
        kv_heads=target.kv_heads,
        head_dim=target.head_dim,
        ffn=target.weights["blk.0.ffn_up.weight"].shape[0],
        vocab=vocab,
        rope_base=target.rope_base,
        eps=target.eps,
    )


def common_tokens(batches: list[data.Texts], count: int, vocab: int) -> list[int]:
    """Return the tokens that the target writes most, ascending; rare places are filled by the tokenizer's first merges."""
    seen = torch.zeros(vocab, dtype=torch.float64)
    for texts in batches:
        times = torch.arange(texts.tokens.shape[1], device=texts.tokens.device)[None]
        written = texts.tokens[(times >= texts.starts[:, None]) & (times < texts.ends[:, None])]
        seen += torch.bincount(written.cpu(), minlength=vocab)
    seen += torch.linspace(1e-3, 0, vocab, dtype=torch.float64)
    return sorted(seen.topk(count).indices.tolist())


def export(student: Student, ids: list[int], target_path: Path, out: Path, halves: bool) -> None:
    """Write the drafter's GGUF file and, if asked, its float16 checkpoint in two halves."""
    import numpy as np

    state = {name: values.float().cpu().numpy() for name, values in student.drafter.state_dict().items()}
    shape = student.drafter.shape
    part = out / f"{student.name}.part"
    write_gguf(part, shape, state, target_path, ids, "Q4_0", "Q4_0")
    part.replace(out / f"{student.name}.gguf")
    if halves:
        names = sorted(state, key=lambda name: state[name].size)
        for half in (0, 1):
            part = {name: state[name].astype(np.float16) for name in names[half::2]}
            np.savez(out / f"{student.name}-half{half}.npz", **part)


def run(options: argparse.Namespace) -> None:
    """Write texts, train until the time is nearly over, measure, export."""
    begin = time.monotonic()
    deadline = begin + options.seconds
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    options.state.mkdir(parents=True, exist_ok=True)
    log = (options.out / "metrics.jsonl").open("a", encoding="utf-8")

    def note(**values: object) -> None:
        line = json.dumps({"seconds": round(time.monotonic() - begin, 1), **values})
        log.write(line + "\n")
        log.flush()
        print(line, flush=True)

    target = Target(options.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    shapes = {name: shape_for(target, {"one": 1, "two": 2}[name]) for name in options.drafters.split(",")}
    students, notes = make_students(shapes, target, options.state)
    calls = int(notes["calls"])
    note(event="start", calls=calls, torch=torch.__version__, device=str(device))
    toy, room = options.toy, options.gib * 2**30
    batches: list[data.Texts] = []
    held = 0
    write_until = begin + options.seconds * options.write_share
    for texts in data.make(
        target, 1000 + calls, 300 if toy else 60_000, 8 if toy else 2048, 24 if toy else 192, write_until, 400 if toy else data.PROMPT_MAX
    ):
        whole = data.with_features(target, texts, students[0].drafter.shape.taken)
        assert whole.features is not None
        batches.append(whole)
        held += whole.features.nbytes
        if held > room or (toy and len(batches) == 3):
            break
    note(event="texts", batches=len(batches), answer_tokens=sum(b.answer_tokens for b in batches), gib=held / 2**30)
    ids = notes["ids"] or common_tokens(batches, students[0].drafter.shape.draft_vocab, target.embedding.shape[0])
    notes["ids"] = ids
    prompts = {n: t[: 1 if toy else 100] for n, t in evaluate.held_out(options.prompts).items()}
    held_out = evaluate.greedy_texts(target, prompts, 24 if toy else 160)
    note(event="held out", tokens={n: t.answer_tokens for n, t in held_out.items()})

    def report(final: bool) -> None:
        chosen = torch.tensor(ids, device=device)
        for student in students:
            student.drafter.eval()
            for name, texts in held_out.items():
                for head, tokens in (("whole", None), ("reduced", chosen)):
                    if final or head == "reduced":
                        found = evaluate.acceptance(student.drafter, target, texts, tokens)
                        if not final:
                            found = {"length": found["length"]}
                        note(event="acceptance", drafter=student.name, step=step, head=head, **{"class": name}, **found)
            student.drafter.train()

    def hand_out(halves: bool) -> None:
        for student in students:
            try:
                export(student, ids, options.target, options.out, halves and student.name == "two")
            except Exception as error:  # noqa: BLE001 -- the figures and the other drafter must still come back
                note(event="export failed", drafter=student.name, error=repr(error))

    started, step, last_note, last_save = time.monotonic(), 0, 0.0, time.monotonic()
    finish = deadline - options.tail
    weights = torch.tensor([float(len(b.tokens)) for b in batches])
    sums: dict[str, float] = {}
    while (now := time.monotonic()) < finish and not (toy and step >= 6):
        progress = (now - started) / (finish - started)
        texts = batches[int(torch.multinomial(weights, 1))]
        rows = torch.randint(len(texts.tokens), (options.rows,), device=device)
        for student in students:
            student.drafter.round_weights(calls > 0 or progress > 0.4)
            for group in student.optimizer.param_groups:
                group["lr"] = student.peak * rate(progress, calls) * (3 if group["weight_decay"] == 0 else 1)
            student.optimizer.zero_grad(set_to_none=True)
            found = learn(student, texts, rows, options.anchors, target, options.chunk)
            torch.nn.utils.clip_grad_norm_(student.drafter.parameters(), 1.0)
            student.optimizer.step()
            for key, value in found.items():
                sums[f"{student.name}/{key}"] = 0.98 * sums.get(f"{student.name}/{key}", value) + 0.02 * value
        step += 1
        if now - last_note > options.every:
            last_note = now
            note(event="train", step=step, progress=round(progress, 3), **{k: round(v, 4) for k, v in sums.items()})
        if now - last_save > 150:
            last_save = now
            save(students, notes, options.state)
            hand_out(halves=False)
            report(final=False)
    for student in students:
        student.drafter.round_weights()
    notes["calls"] = calls + 1
    save(students, notes, options.state)
    hand_out(halves=True)
    report(final=True)
    note(event="done", step=step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=520)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--prompts", type=Path, default=Path("src/redline/workload/data/prompts.yaml"))
    parser.add_argument("--drafters", default="two,one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--anchors", type=int, default=24)
    parser.add_argument("--chunk", type=int, default=8192)
    parser.add_argument("--gib", type=float, default=70)
    parser.add_argument("--write-share", type=float, default=0.22)
    parser.add_argument("--tail", type=float, default=60)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--toy", action="store_true", help="a few steps on a few texts, for any processor")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
