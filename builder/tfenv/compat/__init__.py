"""The truth about combinations: which TensorFlow runs with which libraries, Python, GPU and driver."""
