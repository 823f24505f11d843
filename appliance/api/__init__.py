"""The REST API; Spanish wire words live in `wire`."""
