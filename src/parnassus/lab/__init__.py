"""The lab: a web page over the same runs, where models can be touched."""
