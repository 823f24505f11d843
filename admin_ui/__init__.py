"""The administrators' console: pages over the services, and nothing else.

It sees no password of a person, opens no HSM, and holds no pepper. Everything
works without scripts; with them, what changes by itself is seen to change.
"""
