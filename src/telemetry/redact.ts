/**
 * What must not stand in a log line, and how it is kept out. Two nets, one behind the other:
 *
 *  1. by name, before a line is made: the values of fields whose names say that they hold a credential or what a person wrote or is
 *     called (`email`, `text`, `note`, …) are replaced;
 *  2. by shape, on the finished line: registered secrets, tokens of the services we talk to, passwords in URLs, e-mail
 *     addresses, card numbers. This net also catches what hides in an error's message or stack.
 *
 * Ids (ours, Slack's, the provider's) are not redacted: they are what an investigation goes by.
 */
import { headOf } from "../domain/text/cut.js";

export const REDACTED = "[redacted]";

/** Bounds of one line: a log is not a place to keep documents. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 50;
const MAX_TEXT = 4_000;

/** Compared without case, dashes and underscores. */
const CREDENTIAL_NAMES: ReadonlySet<string> = new Set([
  "accesstoken",
  "apikey",
  "apptoken",
  "authorization",
  "bottoken",
  "clientsecret",
  "connectionstring",
  "cookie",
  "databaseurl",
  "password",
  "redisurl",
  "refreshtoken",
  "responseurl",
  "secret",
  "secretkey",
  "setcookie",
  "signature",
  "signingsecret",
  "stripesignature",
  "token",
  "triggerid",
  "webhooksecret",
  "xslacksignature",
]);

const PERSONAL_NAMES: ReadonlySet<string> = new Set([
  "address",
  "blocks",
  "body",
  "content",
  "customername",
  "displayname",
  "email",
  "emailnormal",
  "evidencetext",
  "filertext",
  "firstname",
  "fullname",
  "lastname",
  "name",
  "note",
  "phone",
  "prose",
  "question",
  "realname",
  "reasontext",
  "summary",
  "text",
  "tickettext",
  "username",
]);

/** Each finds one kind of thing in a finished line and says what to leave in its place. */
const SHAPES: readonly (readonly [RegExp, string])[] = [
  [/xox[a-z]-[\w-]{4,}/g, "[slack-token]"],
  [/xapp-[\w-]{4,}/g, "[slack-token]"],
  [/\b[sr]k_(?:test|live)_\w{4,}/g, "[payments-key]"],
  [/\bwhsec_\w{4,}/g, "[webhook-secret]"],
  [/\bsk-ant-[\w-]{4,}/g, "[model-key]"],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, "$1 [redacted]"],
  [/hooks\.slack\.com\/[\w/-]+/g, "hooks.slack.com/[redacted]"],
  // user:password@host in any URL; the user stays, it names a role.
  [/(:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/g, "$1:[redacted]@"],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, "[email]"],
];

/** 14 to 19 digits: 13 would take every millisecond timestamp for a card. */
const CARD_NUMBER = /\b\d(?:[ -]?\d){13,18}\b/g;

/** A safe copy of what is logged: bounded, with the values of telling names replaced. */
export function redactFields(fields: object): Record<string, unknown> {
  return copyObject(fields, 0, new Set());
}

/** Makes the second net; `secrets` are exact values that must never appear, in their plain and their JSON form. */
export function lineRedactor(secrets: readonly string[]): (line: string) => string {
  const exact = [...new Set(secrets.flatMap((value) => [value, JSON.stringify(value).slice(1, -1)]))]
    // Very short values would blank out half of every line.
    .filter((value) => value.length >= 6)
    .sort((a, b) => b.length - a.length);
  return (line) => {
    let clean = line;
    for (const value of exact) clean = clean.replaceAll(value, "[secret]");
    for (const [shape, instead] of SHAPES) clean = clean.replace(shape, instead);
    return clean.replace(CARD_NUMBER, (digits) => (isCardNumber(digits) ? "[card]" : digits));
  };
}

function copy(value: unknown, depth: number, seen: Set<object>): unknown {
  switch (typeof value) {
    case "string":
      return value.length > MAX_TEXT ? `${headOf(value, MAX_TEXT)}… (${value.length} characters)` : value;
    case "bigint":
      return value.toString();
    case "function":
    case "symbol":
      return `[${typeof value}]`;
    case "object":
      return value === null ? null : copyReference(value, depth, seen);
    default:
      return value;
  }
}

function copyReference(value: object, depth: number, seen: Set<object>): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[invalid date]" : value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (seen.has(value)) return "[circular]";
  if (depth >= MAX_DEPTH) return "[deeper]";
  seen.add(value);
  try {
    if (value instanceof Error) return copyError(value, depth, seen);
    if (Array.isArray(value)) {
      const items = value.slice(0, MAX_ITEMS).map((item) => copy(item, depth + 1, seen));
      return value.length > MAX_ITEMS ? [...items, `… ${value.length - MAX_ITEMS} more`] : items;
    }
    if (value instanceof Map) return copyObject(Object.fromEntries(value), depth, seen);
    if (value instanceof Set) return copy([...value], depth, seen);
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === "function") return copy(toJSON.call(value), depth + 1, seen);
    return copyObject(value, depth, seen);
  } finally {
    seen.delete(value);
  }
}

function copyObject(value: object, depth: number, seen: Set<object>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value).slice(0, MAX_ITEMS)) {
    result[name] =
      isTelling(name) && inner !== null && inner !== undefined ? REDACTED : copy(inner, depth + 1, seen);
  }
  return result;
}

function copyError(error: Error, depth: number, seen: Set<object>): Record<string, unknown> {
  const { code, retry, ids } = error as { code?: unknown; retry?: unknown; ids?: unknown };
  return {
    type: error.name,
    message: copy(error.message, depth, seen),
    ...(code === undefined ? {} : { code: copy(code, depth, seen) }),
    ...(retry === undefined ? {} : { retry: copy(retry, depth, seen) }),
    ...(ids === undefined ? {} : { ids: copy(ids, depth + 1, seen) }),
    stack: copy(error.stack, depth, seen),
    ...(error.cause === undefined ? {} : { cause: copy(error.cause, depth + 1, seen) }),
  };
}

function isTelling(name: string): boolean {
  const plain = name.toLowerCase().replace(/[-_]/g, "");
  return CREDENTIAL_NAMES.has(plain) || PERSONAL_NAMES.has(plain);
}

/** The check digit of payment cards (ISO/IEC 7812-1): keeps order numbers and timestamps from being taken for cards. */
function isCardNumber(text: string): boolean {
  const digits = [...text.replace(/\D/g, "")].map(Number).reverse();
  const sum = digits.reduce((total, digit, index) => {
    if (index % 2 === 0) return total + digit;
    return total + (digit > 4 ? digit * 2 - 9 : digit * 2);
  }, 0);
  return sum % 10 === 0;
}
