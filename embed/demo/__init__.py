"""An integrator's site, for trials: the other side of the iframe.

It knows of the appliance what any integrator knows (two addresses, an id, an API
key) and imports nothing of it but the settings' folder, so that it shows honestly
what an integrator has to do.
"""
