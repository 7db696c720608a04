"""Probes of diffusion models: schedules, samplers, guidance, Langevin dynamics (book ch. 13)."""
