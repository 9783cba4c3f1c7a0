"""Why TensorFlow sees no GPU in here: looks from inside any container or image, changes nothing.

Standard library alone, Python 3.7 to 3.14: ``python3 doctor.pyz [--json] [--deep]``. It judges by itself;
what the host knows it may be told with ``--host``.
"""
