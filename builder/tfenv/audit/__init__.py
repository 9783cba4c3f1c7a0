"""Reads what TensorFlow's own artefacts say: wheels on an index, an installed image, a folder.

From the outside in: ``listing`` (what the index has), ``ranges`` (bytes of a remote wheel), ``trees`` (its
members), ``headers`` and ``shallow`` (what its small text files say), ``elf``, ``fatbin``, ``lz4``, ``cudnn``
and ``deep`` (what its libraries hold), ``survey`` (many wheels, each once). From there to the facts:
``release`` and ``kernels`` (a release's facts from its wheels), ``datafile`` (the committed files), ``run``,
``telling`` and ``show`` (what ``tfenv facts`` does and prints).
"""
