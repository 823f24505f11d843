"""One module a page or a few: parse, call a service, render."""
