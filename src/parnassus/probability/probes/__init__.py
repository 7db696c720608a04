"""Things to touch: laws, and what becomes of them when something is seen."""
