"""The scripts of `gpu/` as modules, and a stand-in for vLLM that boots at once."""

import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOST = ROOT / "gpu" / "host"
sys.path[:0] = [str(HOST), str(ROOT / "gpu")]

STAND_IN = '''
import time, types

class SamplingParams:
    def __init__(self, **values):
        self.__dict__.update(values)

class LLM:
    """Behaves by max_num_batched_tokens: 1 raises, 2 hangs, 3 dies, anything else boots."""

    def __init__(self, **args):
        batched, self.drafts = args["max_num_batched_tokens"], 0
        if batched == 1:
            raise ValueError("no such thing")
        if batched == 2:
            time.sleep(300)
        if batched == 3:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        self.speculative = args.get("speculative_config")
        cache = types.SimpleNamespace(num_gpu_blocks=1550)
        self.llm_engine = types.SimpleNamespace(vllm_config=types.SimpleNamespace(cache_config=cache))
        print("INFO Available KV cache memory: 74.20 GiB")

    def collective_rpc(self, method, args=()):
        return [{"available_bytes": 79671152990}] if method == "redline_facts" else [self.speculative is not None]

    def get_metrics(self):
        return [types.SimpleNamespace(name="vllm:spec_decode_num_drafts", value=self.drafts)]

    def generate(self, prompts, params, use_tqdm=True):
        self.drafts += 10 if self.speculative else 0
        times = types.SimpleNamespace(scheduled_ts=0.5, first_token_ts=1.0, last_token_ts=3.0)
        answer = types.SimpleNamespace(token_ids=[0] * params.max_tokens)
        return [types.SimpleNamespace(metrics=times, outputs=[answer]) for _ in prompts]
'''
TORCH = """
import types
__version__ = "2.11"
cuda = types.SimpleNamespace(is_initialized=lambda: False)
version = types.SimpleNamespace(cuda="13.0")
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A folder that stands for a host's engine site."""
    site = tmp_path / "site"
    for name, text in (("vllm", STAND_IN), ("torch", TORCH)):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text(textwrap.dedent(text))
    for name in ("vllm", "torch", "triton", "transformers"):
        folder = site / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    return site
