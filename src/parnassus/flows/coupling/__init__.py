"""Coupling flows: affine couplings, Real NVP and neural spline flows (book sec. 13.1)."""
