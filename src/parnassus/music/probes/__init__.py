"""Things to touch in music: a voice, and what spectra and cepstra make of it (book sec. 10.1.2)."""
