"""How far a served model goes: tokens before it repeats itself, and the depth to which it finds a code again.

`python benchmarks/reach.py --url http://127.0.0.1:8120 [--depths 512,1024,2048,4096]` prints one line an answer and
what a catalogue may say: the shortest coherent stretch over all subjects (greedy), and the deepest depth up to which
every code at every position was found. One boot, greedy: a fact about the model at these weights, not about speed.
"""

import argparse
import asyncio

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import CheckContext
from redline.checks.context import climb
from redline.checks.measures import TextVerdict, judge_text
from redline.checks.output import SUBJECTS, essay
from redline.probe.client import Client
from redline.probe.target import Target
from redline.workload.needles import POSITIONS, Recall

STEP_CHARACTERS = 40


def coherent_characters(text: str) -> int:
    """Return how long the text is before it first counts as degenerate; all of it when it never does."""
    for end in range(STEP_CHARACTERS, len(text), STEP_CHARACTERS):
        if judge_text(text[:end]).verdict is TextVerdict.DEGENERATE:
            return end
    return len(text)


async def coherence(context: CheckContext, tokens: int) -> int:
    """Return the shortest coherent stretch in tokens, by the share of the characters of each answer."""
    found = []
    for subject in SUBJECTS:
        exchange = await put(context, chat_request(context, essay(subject), tokens), 300)
        made = exchange.usage.completion_tokens or 0
        if broken := trouble(exchange):
            print(f"{subject}: {broken}")
            continue
        end = coherent_characters(exchange.content)
        whole = end == len(exchange.content)
        found.append(tokens if whole else round(made * end / len(exchange.content)))
        print(f"{subject}: {made} tokens, {'coherent' if whole else f'coherent up to {found[-1]}'}", flush=True)
    return min(found, default=0)


async def recall(context: CheckContext, depths: list[int], seeds: int) -> int:
    """Return the deepest depth up to which every code was found."""
    reach, unbroken = 0, True
    for depth in depths:
        seen: list[Recall] = []
        for seed in range(seeds):
            rung = await climb(context, f"reach/{depth}/{seed}", depth, POSITIONS)
            seen += rung.recalls
        hits = sum(word is Recall.RECALLED for word in seen)
        print(f"depth {depth}: {hits} of {len(seen)} codes: {', '.join(word.value for word in seen)}", flush=True)
        unbroken = unbroken and bool(seen) and hits == len(seen)
        reach = depth if unbroken else reach
    return reach


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--depths", default="512,1024,2048,4096")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    async with Client(Target(url=options.url, model="")) as client:
        model = (await client.model_ids())[0]
    async with Client(Target(url=options.url, model=model)) as client:
        context = CheckContext(client=client, model=None, drafting=None)
        coherent = await coherence(context, options.tokens)
        deep = await recall(context, [int(word) for word in options.depths.split(",") if word], options.seeds)
    print(f"coherent_tokens {coherent}, recall_tokens {deep}")


if __name__ == "__main__":
    asyncio.run(main())
