/**
 * Text that the database can hold. PostgreSQL refuses U+0000 everywhere and halves of surrogate pairs in jsonb; people, models and
 * providers send both, and a cut through an emoji makes one. Each becomes U+FFFD, so that nothing is lost but what no reader
 * could see.
 */
const REPLACEMENT = "\ufffd";
/** What may need a look: NUL or a surrogate as itself, or escaped as JSON writes it. */
const SUSPECT = /[\0\ud800-\udfff]|\\u(?:0000|d[89a-f])/i;

export const storableText = (text: string): string =>
  SUSPECT.test(text) ? text.replaceAll("\0", REPLACEMENT).toWellFormed() : text;

/** The same value with every text in it, names of members included, made storable. What is storable already is given back itself. */
export function storable<T>(value: T): T {
  return clean(value) as T;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return storableText(value);
  if (Array.isArray(value)) {
    const items = value.map(clean);
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(([key, member]) => [storableText(key), clean(member)] as const);
  const same = entries.every(([key, member]) => Object.hasOwn(value, key) && value[key] === member);
  return same ? value : Object.fromEntries(entries);
}

/** As `storable`, for a text that may itself be JSON: there the escapes count too. */
export function storableDocument(text: string): string {
  if (!SUSPECT.test(text)) return text;
  const plain = storableText(text);
  if (!/^\s*[{["]/.test(plain) || !/\\u(?:0000|d[89a-f])/i.test(plain)) return plain;
  try {
    const parsed: unknown = JSON.parse(plain);
    const kept = storable(parsed);
    return kept === parsed ? plain : JSON.stringify(kept);
  } catch {
    // Not JSON after all: plain text may say \u0000 in letters.
    return plain;
  }
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
