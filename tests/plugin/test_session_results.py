"""The results of a session, collected report by report."""

from pytest_kbrel.session.run_builder import SessionResults

FILE = "mini.kb.yaml"
ONE, TWO = f"{FILE}::head_to_tail[a]", f"{FILE}::monitor[b]"


def session(*expected, **more):
    return SessionResults(expected=dict.fromkeys(expected), **more)
