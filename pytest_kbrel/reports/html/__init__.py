"""``report.html``: the run as one page that needs nothing from outside."""
