"""Documents: what the panel and the widgets show, as plain data, made here once for both."""
