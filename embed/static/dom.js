// Elements without markup: text is always text, so data can never become code.

/**
 * Make an element.
 * @param {string} tag
 * @param {Object<string, unknown>} [attributes] `on…` are listeners, true is an empty
 *   attribute, null and false leave it out.
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child || child === 0));
  return element;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * Put a new content in place of an element's.
 * @param {Element} element
 * @param {...(Node|string|null|undefined|false)} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter(Boolean));
}
