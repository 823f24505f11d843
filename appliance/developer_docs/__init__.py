"""Documentation for developers that the appliance serves itself, in two languages."""
