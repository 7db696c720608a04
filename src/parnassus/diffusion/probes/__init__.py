"""Things to touch in diffusion: noise that turns into data, and fields that lead it there (book ch. 13)."""
