"""The words in which endpoints are declared: answers, errors, parameters."""
