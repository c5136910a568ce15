/** The embedded PostgreSQL cannot be had; the message is a sentence for the user that says what to do. */
export class EmbeddedError extends Error {
  readonly code = "embedded_postgres";
  readonly retry = "never";
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "EmbeddedError";
  }
}
