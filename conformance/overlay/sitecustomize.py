"""Runs at the start of every interpreter of the conformance environment, vLLM's own child processes included.

vLLM inspects model classes in child processes, and the Qwen ones import torchvision. PyPI's torchvision beside a CPU
build of torch has no compiled operators and fails on `torchvision::nms`; declaring two of them is enough to import it.
Nothing here runs an image through anything.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

_kept: list[object] = []  # torch drops the declarations of a library that is collected


class _DeclareOperators(importlib.abc.MetaPathFinder):
    """Declares the operators on the first import of torchvision, then steps aside."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            _kept.append(library)
        return None


sys.meta_path.insert(0, _DeclareOperators())
