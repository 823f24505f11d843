// Whether a payload is as the protocol's table describes it (embed/fields.py).

/**
 * Find the first field that is not as described. Null and empty texts are absent.
 * @param {Object<string, unknown>} payload
 * @param {Array<object>} fields
 * @param {string} [prefix]
 * @returns {string|null} its path, or null when all are right.
 */
export function firstFault(payload, fields, prefix = "") {
  for (const field of fields) {
    const path = prefix + field.name;
    const value = payload[field.name];
    if (value === undefined || value === null || value === "") {
      if (field.required) return path;
      continue;
    }
    const fault = faultOf(value, field, path);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * What a field must be, for whoever sent it wrongly.
 * @param {string} path as `firstFault` gives it.
 * @param {Array<object>} fields
 */
export function described(path, fields) {
  const [name, ...rest] = path.split(".");
  const field = fields.find((one) => one.name === name);
  if (field === undefined) return {};
  if (rest.length) return described(rest.join("."), field.fields ?? []);
  return { fieldType: field.kind, allowed: field.allowed };
}

function faultOf(value, field, path) {
  if (field.kind === "object") {
    if (!isPlain(value)) return path;
    return firstFault(value, field.fields ?? [], `${path}.`);
  }
  if (field.kind === "integer") return Number.isInteger(value) ? null : path;
  if (field.kind === "array") return Array.isArray(value) ? null : path;
  if (typeof value !== field.kind) return path;
  if (field.kind !== "string") return null;
  const fits =
    (field.most === undefined || value.length <= field.most) &&
    (field.pattern === undefined || new RegExp(field.pattern).test(value)) &&
    (field.allowed === undefined || field.allowed.includes(value));
  return fits ? null : path;
}

/** @param {unknown} value @returns {boolean} an object that is no array. */
export function isPlain(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Characters of everything in a payload but documents' Base64.
 * @param {unknown} value
 * @param {number} [depth]
 */
export function weight(value, depth = 0) {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  // Nothing that we take is so deep; ArrayBuffers and the like count as nothing.
  if (depth > 5) return Infinity;
  let sum = 2;
  for (const [name, inner] of Object.entries(value)) {
    sum += name.length;
    if (name !== "base64" || typeof inner !== "string") sum += weight(inner, depth + 1);
    if (sum > 1e7) return Infinity;
  }
  return sum;
}
