"""Reads what TensorFlow's own artefacts say: wheels on an index, an installed image, a folder.

From the outside in: ``listing`` (what the index has), ``ranges`` (bytes of a remote wheel), ``trees`` (its
members), ``headers`` (what its small text members say), ``elf``, ``fatbin`` and ``lz4`` (what its libraries
hold), ``shallow`` and ``deep`` (both of these together), ``release`` (a release's facts from its wheels),
``datafile`` (the committed files) and ``survey`` (all of it over an index).
"""
