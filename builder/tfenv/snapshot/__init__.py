"""Snapshots: all that an image was built from in one folder, and a rebuild held against what it was.

A folder of snapshots is an OCI image layout: see docs/bundle.md. ``archive`` writes one, ``check`` rehashes
it, ``rebuild`` restores the inputs, builds and compares.
"""
