"""The discrete diffusion chain: noise schedules, forward process, posterior, objectives and bounds."""
