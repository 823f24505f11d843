"""Measurements of the frame's page, by scripts that run in it."""

from typing import Final

ROWS: Final = """() => {
  const middles = [...document.querySelectorAll("#bar button")].map((button) => {
    const { top, bottom } = button.getBoundingClientRect();
    return Math.round((top + bottom) / 2);
  });
  return new Set(middles).size;
}"""
"""In how many rows the buttons of the bar stand."""
