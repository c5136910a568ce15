/**
 * Stripe's form encoding: `metadata[operation_id]=op_1&created[gte]=5&expand[]=charge`.
 *
 * Decoded into plain nested values of strings only; typing a value is the endpoint's business.
 */

export type FormValue = string | FormValue[] | { [key: string]: FormValue };
export type FormObject = { [key: string]: FormValue };

/** Thrown for bracket syntax that nests a value under a scalar or is not closed. */
export class FormSyntaxError extends Error {
  readonly key: string;
  constructor(key: string) {
    super(`Invalid form key: ${key}`);
    this.name = "FormSyntaxError";
    this.key = key;
  }
}

/**
 * @param text the body of a POST or the query of a GET, without the question mark
 * @throws FormSyntaxError
 */
export function parseForm(text: string): FormObject {
  const root: FormObject = Object.create(null) as FormObject;
  for (const [key, value] of new URLSearchParams(text)) {
    assign(root, splitKey(key), value, key);
  }
  return root;
}

function splitKey(key: string): string[] {
  const bracket = key.indexOf("[");
  if (bracket === -1) return [key];
  const path = [key.slice(0, bracket)];
  const rest = key.slice(bracket);
  if (!/^(\[[^[\]]*\])+$/.test(rest)) throw new FormSyntaxError(key);
  for (const part of rest.matchAll(/\[([^[\]]*)\]/g)) path.push(part[1] ?? "");
  return path;
}

function assign(root: FormObject, path: string[], value: string, key: string): void {
  let node: FormObject = root;
  for (let i = 0; i < path.length; i += 1) {
    const part = path[i] ?? "";
    const isLast = i === path.length - 1;
    const following = path[i + 1];
    if (isLast) {
      node[part] = value;
      return;
    }
    const existing = node[part];
    if (following === "" || /^\d+$/.test(following ?? "")) {
      if (i + 1 !== path.length - 1) throw new FormSyntaxError(key);
      if (existing !== undefined && !Array.isArray(existing)) throw new FormSyntaxError(key);
      node[part] = [...(existing ?? []), value];
      return;
    }
    if (existing === undefined) {
      const child: FormObject = Object.create(null) as FormObject;
      node[part] = child;
      node = child;
    } else if (typeof existing === "object" && !Array.isArray(existing)) {
      node = existing;
    } else {
      throw new FormSyntaxError(key);
    }
  }
}

/** The same text for the same parameters in any order: what an idempotency key is compared by. */
export function canonicalForm(value: FormValue): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalForm).join(",")}]`;
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalForm(value[key] ?? "")}`);
  return `{${entries.join(",")}}`;
}

/** Names the parameters whose values differ, for the message of an idempotency error. */
export function differingKeys(before: FormObject, after: FormObject): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys]
    .filter((key) => canonicalForm(before[key] ?? "") !== canonicalForm(after[key] ?? ""))
    .sort();
}
