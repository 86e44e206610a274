"""Acceptance of a drafter on prompts that it never saw, offline: drafts at every token, then the walk over them.

    python -m drafter.evaluate DRAFTER.gguf TARGET.gguf [--device cuda]

The prompts are those that redline measures with; the text is the target's own greedy answer.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from drafter.data import Texts, answer, with_features
from drafter.model import Drafter
from drafter.target import Target, chat

HELD_OUT = ("prose", "code", "chat", "edit", "structured")
SURE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def held_out(path: Path) -> dict[str, list[str]]:
    """Return redline's measuring prompts by class."""
    import yaml

    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: [text.strip() for text in loaded[name]] for name in HELD_OUT}


def greedy_texts(target: Target, prompts: dict[str, list[str]], count: int) -> dict[str, Texts]:
    """Return the target's greedy answers by class; all are written in one batch."""
    ids = [target.tokenizer.encode(chat(text)).ids for texts in prompts.values() for text in texts]
    cold = torch.zeros(len(ids), device=target.device)
    whole, at, found = answer(target, ids, count, cold, cold.long(), 0), 0, {}
    for name, texts in prompts.items():
        part = slice(at, at + len(texts))
        found[name] = Texts(whole.tokens[part], whole.starts[part], whole.ends[part])
        at += len(texts)
    return found


@torch.no_grad()
def acceptance(drafter: Drafter, target: Target, texts: Texts, ids: torch.Tensor | None) -> dict[str, object]:
    """Return mean length, shares accepted by position, and what cutting unsure drafts would leave, over one class."""
    whole = with_features(target, texts, drafter.shape.taken)
    head = target.embedding if ids is None else target.embedding[ids]
    steps, accepted, drafted = [0] * len(SURE), [0] * len(SURE), [0] * len(SURE)
    by_position = [0] * drafter.shape.depth
    for row in range(len(whole.tokens)):
        start, end = int(whole.starts[row]), int(whole.ends[row])
        if end - start < 2:
            continue
        assert whole.features is not None
        anchors = torch.arange(start, end - 1, device=target.device)[None]
        tokens = whole.tokens[row : row + 1]
        hidden = drafter(whole.features[row : row + 1], anchors, tokens[0, anchors], target.embedding)
        drafts, sure = drafter.draft(hidden, tokens[0, anchors], head, ids)
        padded = F.pad(tokens[0], (0, drafter.shape.block), value=-1)
        padded[end:] = -1
        truth = padded[anchors[0][:, None] + 1 + torch.arange(drafter.shape.depth, device=target.device)]
        right = (drafts[0] == truth).long().cumprod(-1).tolist()
        kept = [(sure[0] >= at).long().cumprod(-1).sum(-1).tolist() for at in SURE]
        for number in range(len(SURE)):
            at = 0
            while at < len(right):
                limit = kept[number][at]
                good = min(sum(right[at]), limit)
                if number == 0:
                    by_position = [a + b for a, b in zip(by_position, right[at], strict=True)]
                steps[number] += 1
                accepted[number] += good
                drafted[number] += limit
                at += good + 1
    total = max(steps[0], 1)
    return {
        "length": round(1 + accepted[0] / total, 3),
        "by_position": [round(count / total, 3) for count in by_position],
        "cut": {
            str(at): {"length": round(1 + a / max(s, 1), 3), "drafted": round(d / max(s, 1), 3)}
            for at, s, a, d in zip(SURE, steps, accepted, drafted, strict=True)
        },
        "steps": steps[0],
    }


def main() -> None:
    from drafter.load import drafter_from_gguf

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drafter", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--prompts", type=Path, default=Path("src/redline/workload/data/prompts.yaml"))
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--few", type=int, default=1000)
    parser.add_argument("--block", type=int, default=0, help="draft with another block than the file's")
    parser.add_argument("--classes", default=",".join(HELD_OUT))
    options = parser.parse_args()
    device = torch.device(options.device)
    target = Target(options.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    drafter, ids = drafter_from_gguf(options.drafter)
    drafter = drafter.to(device)
    if options.block:
        drafter.shape = replace(drafter.shape, block=options.block)
    chosen = {name: texts[: options.few] for name, texts in held_out(options.prompts).items()}
    chosen = {name: chosen[name] for name in options.classes.split(",")}
    for name, texts in greedy_texts(target, chosen, options.tokens).items():
        for head, tokens in (("whole", None), ("reduced", ids)):
            if head == "whole" or tokens is not None:
                found = acceptance(drafter, target, texts, tokens.to(device) if tokens is not None else None)
                print(json.dumps({"class": name, "head": head, **found}), flush=True)


if __name__ == "__main__":
    main()
