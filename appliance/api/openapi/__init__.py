"""The OpenAPI document of the HTTP API, made of what the code checks and answers."""
