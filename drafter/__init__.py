"""Training a DFlash2 block drafter for SmolLM2-135M-Instruct. Apart from redline: only here is torch imported."""
