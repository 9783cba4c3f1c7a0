"""What differs between two environments: cells, images, archives and snapshots, what matters first.

``sides.open_side`` makes a ``Description`` of what a user named, ``sections.compare`` tells two of them
apart, ``telling`` says it. What one side does not tell is unknown there, never removed.
"""
