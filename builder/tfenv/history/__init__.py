"""What each name of an image meant, when and why; and how a name goes back to what it meant before.

Kept per machine, in the store: names are the engine's, and a commit says nothing of what an engine was
given. What a team means by a name is in its repository's own history: matrix.yaml, locks, digest.json.
"""
