"""`pytest suites` runs the whole world; `pytest suites/quick.kb.yaml` its small part, `suites/*.kb.yaml` both."""

collect_ignore = ["quick.kb.yaml"]
