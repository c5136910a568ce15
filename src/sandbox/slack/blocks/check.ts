/**
 * Small checks that are put together into the schemas of blocks and views. Each check walks a value and notes every
 * problem with the words that Slack uses and a JSON pointer to the spot.
 */
export interface Problem {
  message: string;
  pointer: string;
}

export type Check = (value: unknown, at: string, out: Problem[]) => void;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A string of `min` to `max` characters. */
export function str(max = Number.POSITIVE_INFINITY, min = 0): Check {
  return (value, at, out) => {
    if (typeof value !== "string") out.push({ message: "must provide a string", pointer: at });
    else if (value.length > max)
      out.push({ message: `must be less than ${max + 1} characters`, pointer: at });
    else if (value.length < min)
      out.push({ message: `must be more than ${min - 1} characters`, pointer: at });
  };
}

export const bool: Check = (value, at, out) => {
  if (typeof value !== "boolean") out.push({ message: "must provide a boolean", pointer: at });
};

/** An integer from `min` to `max`. */
export function int(min: number, max: number): Check {
  return (value, at, out) => {
    if (typeof value !== "number" || !Number.isInteger(value)) {
      out.push({ message: "must provide an integer", pointer: at });
    } else if (value > max) out.push({ message: `must be less than ${max + 1}`, pointer: at });
    else if (value < min) out.push({ message: `must be greater than ${min - 1}`, pointer: at });
  };
}

export const num: Check = (value, at, out) => {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    out.push({ message: "must provide a number", pointer: at });
  }
};

export function oneOf(...allowed: string[]): Check {
  return (value, at, out) => {
    if (typeof value !== "string" || !allowed.includes(value)) {
      out.push({ message: `must be a valid enum value [${allowed.join(", ")}]`, pointer: at });
    }
  };
}

export function matches(pattern: RegExp, message: string): Check {
  return (value, at, out) => {
    if (typeof value !== "string" || !pattern.test(value)) out.push({ message, pointer: at });
  };
}

/** A string of at most `max` characters that begins like a url; `schemes` narrows it. */
export function url(max: number, schemes = /^[a-z][a-z0-9+.-]*:\S+$/iu): Check {
  const length = str(max, 1);
  return (value, at, out) => {
    const before = out.length;
    length(value, at, out);
    if (out.length === before && !schemes.test(String(value))) {
      out.push({ message: "must be a valid url", pointer: at });
    }
  };
}

/** Pictures are fetched by Slack itself. */
export const webUrl: Check = url(3000, /^https?:\/\/\S+$/iu);

/** A list of `min` to `max` items. */
export function list(item: Check, max: number, min = 0): Check {
  return (value, at, out) => {
    if (!Array.isArray(value)) {
      out.push({ message: "must provide an array", pointer: at });
      return;
    }
    if (value.length > max) out.push({ message: `no more than ${max} items allowed`, pointer: at });
    if (value.length < min) out.push({ message: `must provide at least ${min} items`, pointer: at });
    value.forEach((entry, index) => {
      item(entry, `${at}/${index}`, out);
    });
  };
}

export interface Fields {
  required?: Record<string, Check>;
  optional?: Record<string, Check>;
}

/** An object with exactly these fields; anything else is an invalid additional property. */
export function object(fields: Fields, also?: Check): Check {
  const required = Object.entries(fields.required ?? {});
  const optional = fields.optional ?? {};
  const known = new Set([...required.map(([name]) => name), ...Object.keys(optional)]);
  return (value, at, out) => {
    if (!isObject(value)) {
      out.push({ message: "must provide an object", pointer: at });
      return;
    }
    for (const name of Object.keys(value)) {
      if (!known.has(name)) out.push({ message: `invalid additional property: ${name}`, pointer: at });
    }
    for (const [name, check] of required) {
      const field = value[name];
      if (field === undefined || field === null) {
        out.push({ message: `missing required field: ${name}`, pointer: at });
      } else check(field, `${at}/${name}`, out);
    }
    for (const [name, check] of Object.entries(optional)) {
      const field = value[name];
      if (field !== undefined && field !== null) check(field, `${at}/${name}`, out);
    }
    also?.(value, at, out);
  };
}

/** Chooses the check by the object's `type`. */
export function byType(checks: Record<string, Check>): Check {
  return (value, at, out) => {
    if (!isObject(value)) {
      out.push({ message: "must provide an object", pointer: at });
      return;
    }
    const type = value["type"];
    if (typeof type !== "string") {
      out.push({ message: "missing required field: type", pointer: at });
      return;
    }
    const check = Object.hasOwn(checks, type) ? checks[type] : undefined;
    if (!check) out.push({ message: `unsupported type: ${type}`, pointer: `${at}/type` });
    else check(value, at, out);
  };
}

/** Like `check`, and a problem inside is announced as a failed schema first: where Slack allows several schemas. */
export function anySchema(check: Check): Check {
  return (value, at, out) => {
    const inner: Problem[] = [];
    check(value, at, inner);
    if (inner.length > 0) out.push({ message: "failed to match all allowed schemas", pointer: at }, ...inner);
  };
}

/** `message [json-pointer:/spot]` */
export function sentence(problem: Problem): string {
  return `${problem.message} [json-pointer:${problem.pointer}]`;
}
