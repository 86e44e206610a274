"""Train drafters against a target: one resumable command that stops itself in time.

    python -m drafter.train TARGET.gguf --out FOLDER --state FOLDER --seconds 520 [--device cuda] [--toy]

It writes texts, trains on them, measures on held-out prompts, and leaves metrics and a GGUF file for each drafter. Run
again with the same state folder it goes on with fresh texts.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from drafter import data, evaluate
from drafter.gguf_file import write_gguf
from drafter.learn import Student, Words, common_tokens, learn, rate
from drafter.model import Drafter, start_from_target
from drafter.shape import Shape
from drafter.target import Target

# Layers and block of what is trained together: the block of 8, and a shorter one, whose steps a processor does faster.
KINDS = {"eight": (2, 8), "four": (2, 4), "one": (1, 8)}
MUON_PEAK, ADAM_PEAK = 2e-3, 1.2e-3
SCORED, SAMPLED = 16_384, 4_096  # words of the head that learning compares: the commonest, and a sample of the rest


def shape_for(target: Target, layers: int, block: int) -> Shape:
    """Return a drafter's measures for a target; the served ones are what fits 12 MiB (docs/drafter.md)."""
    vocab, hidden = target.embedding.shape
    small = hidden < 272  # a toy: top_k 16 needs 272 channels
    return Shape(
        layers=layers,
        block=block,
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


def make_students(shapes: dict[str, Shape], target: Target, state: Path) -> tuple[list[Student], dict[str, Any]]:
    """Return the drafters to train, from the state folder where it has them, and what is noted beside them."""
    students: list[Student] = []
    notes: dict[str, Any] = {"calls": 0, "ids": None}
    if (state / "notes.json").is_file():
        notes = json.loads((state / "notes.json").read_text(encoding="utf-8"))
    for name, shape in shapes.items():
        drafter = Drafter(shape)
        start_from_target(drafter, {k: v.float().cpu() for k, v in target.weights.items()}, target.layers)
        drafter.to(target.device)
        optimizers = make_optimizers(drafter, target.device.type == "cuda")
        saved = state / f"{name}.pt"
        if saved.is_file():
            loaded = torch.load(saved, map_location=target.device, weights_only=True)
            drafter.load_state_dict(loaded["drafter"])
            for optimizer, held in zip(optimizers, loaded["optimizers"], strict=True):
                optimizer.load_state_dict(held)
        elif (state / f"{name}.gguf").is_file():  # only the file of an earlier call came back: go on from it
            from drafter.load import drafter_from_gguf

            drafter.load_state_dict(drafter_from_gguf(state / f"{name}.gguf")[0].state_dict())
            notes["calls"] = max(notes["calls"], 1)
        students.append(Student(name, drafter, optimizers))
    return students, notes


def make_optimizers(drafter: Drafter, fused: bool) -> list[torch.optim.Optimizer]:
    """Return Muon for the matrices, whose steps it makes equally large in every direction, and AdamW for the rest."""
    named = dict(drafter.named_parameters())
    books = [values for name, values in named.items() if "codebook" in name]
    matrices = [p for name, p in named.items() if p.ndim == 2 and "candidate_selector" not in name]
    others = [p for name, p in named.items() if not any(p is taken for taken in (*books, *matrices))]
    muon = torch.optim.Muon(
        [{"params": matrices, "peak": MUON_PEAK}], weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    groups = [{"params": others, "peak": ADAM_PEAK}, {"params": books, "peak": 3 * ADAM_PEAK}]
    return [muon, torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0, fused=fused)]


def save(students: list[Student], notes: dict[str, Any], state: Path) -> None:
    """Write the state folder; each file appears whole."""
    for student in students:
        held = {
            "drafter": student.drafter.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in student.optimizers],
        }
        torch.save(held, state / f"{student.name}.pt.part")
        (state / f"{student.name}.pt.part").replace(state / f"{student.name}.pt")
    (state / "notes.json").write_text(json.dumps(notes), encoding="utf-8")


def export(student: Student, ids: list[int], target_path: Path, out: Path) -> None:
    """Write the drafter's GGUF file, whole or not at all."""
    state = {name: values.float().cpu().numpy() for name, values in student.drafter.state_dict().items()}
    part = out / f"{student.name}.part"
    write_gguf(part, student.drafter.shape, state, target_path, ids, matrix_type="Q4_0")
    part.replace(out / f"{student.name}.gguf")


class Session:
    """One call of training: its texts, drafters, notes and clock."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.monotonic()
        self.step = 0
        torch.manual_seed(11 + options.seed)
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every length of text
        torch.set_float32_matmul_precision("high")
        options.out.mkdir(parents=True, exist_ok=True)
        options.state.mkdir(parents=True, exist_ok=True)
        self.log = options.out / "metrics.jsonl"
        device = torch.device(options.device)
        self.target = Target(options.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
        shapes = {name: shape_for(self.target, *KINDS[name]) for name in options.drafters.split(",")}
        self.students, self.notes = make_students(shapes, self.target, options.state)
        self.calls = int(self.notes["calls"])
        self.note(event="start", calls=self.calls, torch=torch.__version__, device=str(device))

    def note(self, **values: object) -> None:
        """Add a line to the metrics."""
        line = json.dumps({"seconds": round(time.monotonic() - self.began, 1), **values})
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)

    def write_texts(self) -> None:
        """Let the target write what to train on, and its answers to the held-out prompts."""
        options, toy, held = self.options, self.options.toy, 0
        until = self.began + options.seconds * options.write_share
        size = (300, 8, 24) if toy else (120_000, 4096, 192)
        self.batches: list[data.Texts] = []
        longest = 400 if toy else data.PROMPT_MAX
        for texts in data.make(self.target, 1000 * (1 + options.seed) + self.calls, *size, until, longest):
            whole = data.with_features(self.target, texts, self.students[0].drafter.shape.taken)
            assert whole.features is not None
            self.batches.append(whole)
            held += whole.features.nbytes
            if held > options.gib * 2**30 or (toy and len(self.batches) == 3):
                break
        tokens = sum(texts.answer_tokens for texts in self.batches)
        self.note(event="texts", batches=len(self.batches), answer_tokens=tokens, gib=held / 2**30)
        vocab, count = self.target.embedding.shape[0], self.students[0].drafter.shape.draft_vocab
        self.notes["ids"] = self.notes["ids"] or common_tokens(self.batches, count, vocab)
        self.common = torch.tensor(
            common_tokens(self.batches, min(SCORED, vocab // 2), vocab), device=self.target.device
        )
        rest = torch.ones(vocab, dtype=torch.bool, device=self.target.device)
        rest[self.common] = False
        self.rest = rest.nonzero()[:, 0]
        prompts = {name: texts[: 1 if toy else 100] for name, texts in evaluate.held_out(options.prompts).items()}
        self.held_out = evaluate.greedy_texts(self.target, prompts, 24 if toy else 160)
        self.note(event="held out", tokens={name: texts.answer_tokens for name, texts in self.held_out.items()})

    def train(self) -> None:
        """Train all drafters on the same batches until the time is nearly over."""
        options, sums = self.options, dict[str, torch.Tensor]()
        started = noted = saved = time.monotonic()
        finish = self.began + options.seconds - options.tail
        weights = torch.tensor([float(len(texts.tokens)) for texts in self.batches])
        while (now := time.monotonic()) < finish and not (options.toy and self.step >= 6):
            progress = (now - started) / (finish - started)
            texts = self.batches[int(torch.multinomial(weights, 1))]
            rows = torch.randint(len(texts.tokens), (options.rows,), device=self.target.device)
            for student in self.students:
                for name, value in self._learn(student, texts, rows, progress).items():
                    sums[name] = 0.98 * sums.get(name, value) + 0.02 * value
            self.step += 1
            if now - noted > options.every:
                noted = now
                rounded = {name: round(float(value), 4) for name, value in sums.items()}
                self.note(event="train", step=self.step, progress=round(progress, 3), **rounded)
            if now - saved > 150:
                saved = now
                save(self.students, self.notes, options.state)
                self.hand_out()
                self.report(final=False)

    def _learn(
        self, student: Student, texts: data.Texts, rows: torch.Tensor, progress: float
    ) -> dict[str, torch.Tensor]:
        options = self.options
        student.drafter.round_weights(self.calls > 0 or progress > 0.5)
        for optimizer in student.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * rate(progress, self.calls)
            optimizer.zero_grad(set_to_none=True)
        words = Words.draw(self.common, self.rest, SAMPLED)
        found = learn(student, texts, rows, options.anchors, self.target, words, options.chunk)
        torch.nn.utils.clip_grad_norm_(student.drafter.parameters(), 1.0)
        for optimizer in student.optimizers:
            optimizer.step()
        return {f"{student.name}/{name}": value for name, value in found.items()}

    def hand_out(self) -> None:
        """Write what a caller takes away; a fault here must not cost the rest."""
        for student in self.students:
            try:
                export(student, self.notes["ids"], self.options.target, self.options.out)
            except Exception as error:
                self.note(event="export failed", drafter=student.name, error=repr(error))

    def report(self, final: bool) -> None:
        """Measure acceptance on the held-out prompts."""
        chosen = torch.tensor(self.notes["ids"], device=self.target.device)
        for student in self.students:
            student.drafter.eval()
            for name, texts in self.held_out.items():
                for head, tokens in (("whole", None), ("reduced", chosen)):
                    if final or head == "reduced":
                        found = evaluate.acceptance(student.drafter, self.target, texts, tokens)
                        kept = found if final else {"length": found["length"]}
                        labels = {"drafter": student.name, "step": self.step, "head": head, "class": name}
                        self.note(event="acceptance", **labels, **kept)
            student.drafter.train()

    def finish(self) -> None:
        """Leave the drafters as they will be served, and their figures."""
        for student in self.students:
            student.drafter.round_weights()
        self.notes["calls"] = self.calls + 1
        save(self.students, self.notes, self.options.state)
        self.hand_out()
        self.report(final=True)
        self.note(event="done", step=self.step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=520)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--prompts", type=Path, default=Path("src/redline/workload/data/prompts.yaml"))
    parser.add_argument("--drafters", default="eight")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--anchors", type=int, default=24)
    parser.add_argument("--chunk", type=int, default=8192)
    parser.add_argument("--gib", type=float, default=75)
    parser.add_argument("--write-share", type=float, default=0.24)
    parser.add_argument("--tail", type=float, default=25)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--toy", action="store_true", help="a few steps on a few texts, for any processor")
    session = Session(parser.parse_args())
    session.write_texts()
    session.train()
    session.finish()


if __name__ == "__main__":
    main()
