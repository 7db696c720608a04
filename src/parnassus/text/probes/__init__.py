"""Things to touch in text: the ways in which the next token is chosen."""
