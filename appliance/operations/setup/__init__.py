"""`rubrica setup`: from a machine with the units to an installation that signs.

    rubrica setup                      asks what it has to know
    rubrica setup --answers FILE       answers stand in a file, the rest is usual
    rubrica setup --yes                all is usual

What is there is kept: run again, it mends what is amiss and changes nothing else.
"""
