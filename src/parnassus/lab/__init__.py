"""The lab: web pages for runs and claims, with interactive probes."""
