"""The lab: web pages over the same runs, with interactive probes."""
