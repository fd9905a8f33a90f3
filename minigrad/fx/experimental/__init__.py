"""Where torch keeps make_fx."""
