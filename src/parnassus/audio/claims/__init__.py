"""Claims about spectra, cepstra and quantised waves, each with numerical evidence."""
