"""Why TensorFlow does not see a GPU on this host: look, record, judge from the bottom up, and say what to do.

``looking`` collects an ``Evidence`` and changes nothing; what is read from it are facts; findings, as data,
decide from facts; ``layers`` puts them in order. All but the looking is pure: a recording is judged alike.
"""
