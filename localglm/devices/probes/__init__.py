"""One module per question. Each is imported and called in a child process only."""


class AbsentError(Exception):
    """What was to be asked is not there: no package, no driver, another system."""
