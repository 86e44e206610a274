"""A scripted engine that behaves and misbehaves on demand, over real sockets in a real process. Stands alone.

`redline fake-engine SCENARIO` starts one; the scenarios are the YAML files in `scenarios/`. It speaks as vLLM or as
llama.cpp's server does, with a tiny model whose tokens, timing and drafting are known, so that what redline measures
can be compared with the truth. It imports no other room: nothing it shares with the code that is tested against it.
"""
