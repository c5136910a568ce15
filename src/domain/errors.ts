/** Errors say what may be done next. */
export type Retry = "never" | "again" | "same-key" | "after-probe";

/** Base of every error that the program throws on purpose. `message` is a sentence a person can act on. */
export class CountersignError extends Error {
  readonly code: string;
  readonly retry: Retry;
  readonly ids: Readonly<Record<string, string>>;

  constructor(
    code: string,
    message: string,
    options: { retry?: Retry; ids?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CountersignError";
    this.code = code;
    this.retry = options.retry ?? "never";
    this.ids = options.ids ?? {};
  }
}
