import { inspect } from "node:util";

const SHOWN = "[secret]";

/**
 * A value that opens something. It never prints: not in a template, not as JSON, not in a log or an inspector. Whoever needs it
 * says so with `reveal()`, as late as possible.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SHOWN;
  }

  toJSON(): string {
    return SHOWN;
  }

  [inspect.custom](): string {
    return SHOWN;
  }
}
