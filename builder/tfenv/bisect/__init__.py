"""Find the smallest change of pins that makes a command fail.

``search`` is the pure part, ``changes`` knows which mixtures of two sets fit together, ``session`` joins
the stages (ends, dates, packages, versions, cure), ``journal`` keeps every answer, ``venv`` and ``image``
are the two ways to make an environment. Only ``world`` names the real resolver and index; the tests pass
their own.
"""
