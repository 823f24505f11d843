"""Use cases: the only writers of state, one public method each."""
