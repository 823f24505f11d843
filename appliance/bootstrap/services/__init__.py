"""The services of a face, feature by feature: what each is made of."""
