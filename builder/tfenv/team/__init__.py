"""A team's own environments: a row's cell, and the team's packages in layers on top of its image."""
