"""What was done and seen, written so that it survives a crash and can be read by a later version.

Knows the envelope, the manifest and the folder of a run; each room declares the payloads it writes. Renders nothing.
"""
