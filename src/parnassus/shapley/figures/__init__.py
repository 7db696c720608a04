"""Figures of attributions: waterfall, beeswarm, dependence, force, image and text plots."""
