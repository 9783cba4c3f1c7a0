"""Load for GPUs, from inside any image: stress (is it right, and cool?) and bench (how fast?).

Standard library and TensorFlow only, Python 3.7 to 3.13, TensorFlow 2.4 to the newest. Prints one JSON
event a line on stdout; what they mean is decided by the host, who keeps them.
"""
