/** A parameter as the wire has it: text, or bytes. */
import { storableDocument } from "../domain/text/storable.js";

export type WireValue = string | Buffer | null;

/**
 * Text of a value: bigint, number and boolean as PostgreSQL writes them, Date in UTC, arrays as array literals, other objects as JSON;
 * bytes stay bytes. Every value goes through here: what PostgreSQL cannot hold (U+0000, half an emoji) never fails a statement,
 * whoever wrote it.
 *
 * @throws RangeError for an invalid Date, TypeError for what has no text (a function, a symbol)
 */
export function wireValue(value: unknown): WireValue {
  if (value === null || value === undefined) return null;
  switch (typeof value) {
    case "string":
      return storableDocument(value);
    case "bigint":
    case "number":
    case "boolean":
      return String(value);
    case "object":
      return wireObject(value);
    default:
      throw new TypeError(`a ${typeof value} is no parameter of a statement`);
  }
}

function wireObject(value: object): WireValue {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return arrayLiteral(value);
  if (Buffer.isBuffer(value)) return value;
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return storableDocument(JSON.stringify(value));
}

/** Nested arrays are dimensions; a list that belongs into a json column is handed over as JSON text. */
function arrayLiteral(items: readonly unknown[]): string {
  let text = "{";
  for (const [index, item] of items.entries()) {
    if (index > 0) text += ",";
    text += Array.isArray(item) ? arrayLiteral(item) : arrayItem(wireValue(item));
  }
  return `${text}}`;
}

function arrayItem(item: WireValue): string {
  if (item === null) return "NULL";
  if (typeof item !== "string") return `"\\\\x${item.toString("hex")}"`;
  return `"${item.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
