"""The verification suite that runs inside an image: standard library and TensorFlow only.

It imports nothing from the host's package, and must run on Python 3.7 to 3.13, under any user,
with a read-only root, no network and an empty environment.
"""
