"""`rubrica demo`: a trial's people, site and signatures."""
