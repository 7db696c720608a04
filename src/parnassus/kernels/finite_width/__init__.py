"""Networks of finite width: empirical tangent kernels and how they vary (book sec. 15.4)."""
