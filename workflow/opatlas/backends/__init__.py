"""How each framework runs each op: `backends/<backend>/<op>.py` has build, call and kernel_source."""
