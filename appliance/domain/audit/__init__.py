"""The audit: its rows, their chains, and the record compared with them."""
