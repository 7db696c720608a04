"""Energy-based models and their samplers: Boltzmann machines, Gibbs, Metropolis and HMC."""
