/** Elements of the page, made in one line. */

/**
 * Make an element with properties and children.
 * @param {string} tag
 * @param {object} properties
 * @param {...(Node|string)} children
 */
export function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
