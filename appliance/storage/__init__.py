"""Adapters behind `appliance.domain.ports`: database, documents, doorbell."""
