"""Claims about spectra, cepstra and quantised waves."""
