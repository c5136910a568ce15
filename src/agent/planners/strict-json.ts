/**
 * Reads the JSON text of a tool call and says what a plain reader would hide: a key twice (the last one would win), a number
 * with an exponent or a fraction. Money is computed from these inputs, so what is not plain is refused.
 */
import { cutText } from "../../domain/text/cut.js";

/** A sentence, or null when the text is plain. The text is JSON already. */
export function jsonProblem(text: string): string | null {
  return new Scanner(text).problem();
}

/** A key that looks like one; anything else is not repeated in a sentence by code. */
const keyName = (key: string): string => (/^[\w-]{1,64}$/.test(key) ? `"${key}"` : "a key");

class Scanner {
  readonly #text: string;
  #at = 0;
  #found: string | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  problem(): string | null {
    this.#value();
    return this.#found;
  }

  #key = "";

  #note(sentence: string): void {
    this.#found ??= sentence;
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
  }

  #value(): void {
    this.#space();
    const first = this.#text[this.#at];
    if (first === "{") this.#object();
    else if (first === "[") this.#array();
    else if (first === '"') this.#string();
    else this.#scalar();
  }

  #object(): void {
    const keys = new Set<string>();
    this.#at += 1;
    for (;;) {
      this.#space();
      if (this.#ends("}")) return;
      const key = this.#string();
      if (keys.has(key)) this.#note(`The input names ${keyName(key)} twice.`);
      keys.add(key);
      this.#space();
      this.#at += 1; // the colon
      this.#key = key;
      this.#value();
      this.#space();
      if (this.#text[this.#at] === ",") this.#at += 1;
    }
  }

  #array(): void {
    this.#at += 1;
    for (;;) {
      this.#space();
      if (this.#ends("]")) return;
      this.#value();
      this.#space();
      if (this.#text[this.#at] === ",") this.#at += 1;
    }
  }

  /** Steps over the closing mark; true at the end of the text too, so that no text can hold the reader. */
  #ends(mark: string): boolean {
    if (this.#at >= this.#text.length) return true;
    if (this.#text[this.#at] !== mark) return false;
    this.#at += 1;
    return true;
  }

  #string(): string {
    const start = this.#at;
    this.#at += 1;
    while (this.#at < this.#text.length && this.#text[this.#at] !== '"') {
      this.#at += this.#text[this.#at] === "\\" ? 2 : 1;
    }
    this.#at += 1;
    const raw = this.#text.slice(start, this.#at);
    try {
      return String(JSON.parse(raw));
    } catch {
      return raw;
    }
  }

  #scalar(): void {
    const match = /^[^\s,\]}]+/.exec(this.#text.slice(this.#at, this.#at + 400));
    const token = match?.[0] ?? "";
    if (/^-?\d/.test(token) && /[.eE]/.test(token)) {
      this.#note(
        `${keyName(this.#key)}: ${cutText(token, 40)} is not written as plain digits. Send a whole number (14505 minor units for 145.05).`,
      );
    }
    this.#at += Math.max(1, token.length);
  }
}
