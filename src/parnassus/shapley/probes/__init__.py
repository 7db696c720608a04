"""Things to touch: what the players of a game earn as its worths change."""
