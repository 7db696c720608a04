"""Networks of infinite width: how each layer maps the NNGP and tangent kernels (book secs. 15.2-15.4)."""
