/** Structured log lines: fields first, then a fixed sentence. Redaction and correlation are the implementation's. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
