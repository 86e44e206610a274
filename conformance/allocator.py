"""Asks vLLM's own code how it would lay out a KV cache: JSON lines of questions in, the same lines with answers out.

    .conformance/venv/bin/python -m conformance.allocator < questions.jsonl
    .conformance/venv/bin/python -m conformance.allocator --evidence conformance/h200_boots.jsonl

A question is a `shape.Question`. The steps are those of an engine boot (v1/engine/core.py:286), on layers without
weights; docs/conformance.md says which function gives which number. Not known: how much memory a boot leaves free.
"""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from conformance.engine import engine_config, prepare
from conformance.shape import QWEN38_27B, Answer, Drafter, Drafting, Group, Question

GIB = 2**30
LOG_ROUNDING_GIB = 0.005  # the engine logs available memory with two decimals


class Allocator:
    """vLLM's cache plan for one configuration; only the available bytes are still open."""

    def __init__(self, question: Question) -> None:
        from vllm.platforms.interface import Platform
        from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts, resolve_kv_cache_layout
        from vllm.v1.core import kv_cache_planning
        from vllm.v1.core.kv_cache_config_builder import get_kv_cache_config_builder
        from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec

        from conformance.skeleton import BACKENDS, build_layers

        self.config = _config(question)
        self.context_max = question.architecture.context_max
        build_layers(self.config, question.attention, question.gdn_prefill)
        # The CPU platform overrides this with its own block sizes; a GPU runs the base class.
        Platform.update_block_size_for_backend(self.config)
        self.specs = get_kv_cache_spec(self.config)
        layouts = [layout.name for layout in get_supported_kv_cache_layouts([BACKENDS[question.attention]])]
        resolved = resolve_kv_cache_layout(self.config, [layouts], self.specs.values())
        self.config.cache_config.kv_cache_layout = resolved.name
        self.planning = kv_cache_planning
        self.builder = get_kv_cache_config_builder(self.config)
        self.groups = kv_cache_planning.get_global_kv_cache_groups(self.config, [self.specs])
        self.pool_block_bytes: int = kv_cache_planning._pool_bytes_per_block_from_builder(
            self.builder, self.config, self.groups
        )

    @property
    def request_blocks(self) -> int:
        return sum(group.request_blocks for group in self._groups())

    def answer(self, available_bytes: int) -> Answer:
        """Return vLLM's answer for `available_bytes` on each card."""
        from vllm.v1.core import kv_cache_utils

        boots, tokens, concurrency = True, None, None
        num_blocks = available_bytes // self.pool_block_bytes
        try:
            plans = self.planning.get_kv_cache_configs(self.config, [self.specs], [available_bytes], self.groups)
        except ValueError as error:
            if "KV cache" not in str(error) and "cache blocks" not in str(error):
                raise
            boots = False
        else:
            plan = kv_cache_utils.generate_scheduler_kv_cache_config(plans)
            num_blocks = plan.num_blocks
            tokens, concurrency = kv_cache_utils.get_kv_cache_capacity(self.config, plan)
        return Answer(
            block_tokens=self.config.cache_config.block_size,
            page_bytes=max(spec.page_size_bytes for spec in self.specs.values()),
            state_bytes=self._state_bytes(),
            pool_block_bytes=self.pool_block_bytes,
            groups=tuple(self._groups()),
            request_blocks=self.request_blocks,
            num_blocks=num_blocks,
            boots=boots,
            tokens=tokens,
            concurrency=None if concurrency is None else round(concurrency, 6),
            largest_context=self._largest_context(available_bytes),
        )

    def _groups(self) -> Iterator[Group]:
        for group in self.groups:
            spec = group.kv_cache_spec
            yield Group(
                kind=_kind(spec),
                layers=len(group.layer_names),
                block_tokens=spec.block_size,
                request_blocks=-(-spec.max_memory_usage_bytes(self.config) // spec.page_size_bytes),
            )

    def _state_bytes(self) -> int:
        from conformance.skeleton import state_bytes

        return max((state_bytes(spec) for spec in self.specs.values() if _kind(spec) == "gdn"), default=0)

    def _largest_context(self, available_bytes: int) -> int:
        """What `--max-model-len auto` would choose: kv_cache_planning.py:1288, less the null block (:1530)."""
        model, context = self.config.model_config, self.config.model_config.max_model_len
        model.max_model_len = self.context_max
        try:
            found = self.planning._estimate_max_model_len_from_groups(
                self.builder, self.config, self.groups, available_bytes - self.pool_block_bytes
            )
        finally:
            model.max_model_len = context
        return int(found)


def _kind(spec: Any) -> str:
    from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec, SlidingWindowSpec, UniformTypeKVCacheSpecs

    if isinstance(spec, UniformTypeKVCacheSpecs):
        spec = spec.first_spec
    kinds = ((MambaSpec, "gdn"), (SlidingWindowSpec, "sliding"), (FullAttentionSpec, "full"))
    return next(name for kind, name in kinds if isinstance(spec, kind))


def _config(question: Question) -> Any:
    from vllm.engine.arg_utils import EngineArgs

    with tempfile.TemporaryDirectory() as folder:
        target = _write(Path(folder) / "target", question.architecture.config())
        speculative: dict[str, Any] | None = None
        drafter = question.drafter
        if drafter.kind is Drafting.MTP:
            speculative = {"method": "mtp", "num_speculative_tokens": drafter.depth}
        elif drafter.kind is Drafting.DFLASH2:
            draft = _write(Path(folder) / "drafter", drafter.config(question.architecture))
            speculative = {"method": "dflash", "model": draft, "num_speculative_tokens": drafter.depth}
        arguments = EngineArgs(
            model=target,
            dtype="bfloat16",
            max_model_len=question.context,
            max_num_seqs=question.seqs,
            block_size=question.block_size,
            max_num_batched_tokens=question.batched_tokens,
            enable_prefix_caching=question.prefix_caching,
            speculative_config=speculative,
            kv_cache_dtype=question.kv_dtype,
            tensor_parallel_size=question.tp,
        )
        return engine_config(arguments)


def _write(folder: Path, config: dict[str, Any]) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def answer_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield `{"question", "answer"}` for each line; one plan serves lines that differ in bytes only."""
    plans: dict[Question, Allocator] = {}
    for line in lines:
        if not line.strip():
            continue
        question = Question.from_json(json.loads(line))
        key = question.with_bytes(0)
        if key not in plans:
            plans[key] = Allocator(question)
        answer = plans[key].answer(question.available_bytes)
        yield json.dumps({"question": question.to_json(), "answer": answer.to_json()})


def check_evidence(path: Path) -> bool:
    """Print each recorded boot beside vLLM's answer and say whether all agree.

    The engine logs available memory rounded to 0.01 GiB, so a row agrees when the logged blocks and tokens lie in what
    the rounding allows; block and request sizes must be equal.
    """
    agree = True
    for line in path.read_text().splitlines():
        row = json.loads(line)
        plan = Allocator(evidence_question(row))
        low, high = (plan.answer(int((row["available_gib"] + s * LOG_ROUNDING_GIB) * GIB)) for s in (-1, 1))
        same = (
            low.block_tokens == row["block_tokens"]
            and low.request_blocks == row["derived_request_blocks"]
            and low.num_blocks <= row["derived_blocks"] <= high.num_blocks
            and (low.tokens or 0) <= row["pool_tokens"] <= (high.tokens or 0)
            and row["derived_blocks"] * row["max_model_len"] // low.request_blocks == row["pool_tokens"]
        )
        agree &= same
        print(
            f"{'same' if same else 'DIFFERS':<8}{row['drafter']:>8} {row['depth']}  {row['kv']:<5}{row['ssm']:<9}"
            f"{row['gdn_prefill']:<11}block {low.block_tokens:>5} ({row['block_tokens']})  "
            f"request {low.request_blocks:>4} ({row['derived_request_blocks']})  "
            f"blocks {low.num_blocks}-{high.num_blocks} ({row['derived_blocks']})  "
            f"tokens {low.tokens}-{high.tokens} ({row['pool_tokens']})"
        )
    return agree


def evidence_question(row: dict[str, Any]) -> Question:
    """Return the question of a recorded boot of the Qwen3.8-27B text shape."""
    return Question(
        architecture=dataclasses.replace(QWEN38_27B, state_dtype=row["ssm"]),
        drafter=Drafter(kind=Drafting(row["drafter"]), depth=row["depth"]),
        tp=row["tp"],
        kv_dtype="fp8_e4m3" if row["kv"] == "fp8" else "auto",
        gdn_prefill=row["gdn_prefill"],
        context=row["max_model_len"],
        batched_tokens=row["batched_tokens"],
        seqs=row["seqs"],
        available_bytes=int(row["available_gib"] * GIB),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evidence", type=Path, help="compare recorded boots with vLLM's answers")
    options = parser.parse_args()
    prepare()
    if options.evidence:
        return 0 if check_evidence(options.evidence) else 1
    for line in answer_lines(sys.stdin):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # vLLM leaves threads behind that hold up a plain exit
