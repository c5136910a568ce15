/** JSON lines on standard error: level, time, correlation ids, fields, a fixed sentence. Redacted twice, see redact.ts. */
import { type DestinationStream, destination, type Logger as Pino, pino, stdTimeFunctions } from "pino";
import type { LogLevel, Secret } from "../config/index.js";
import type { Logger } from "../domain/ports/logger.js";
import { correlation } from "./correlation.js";
import { lineRedactor, redactFields } from "./redact.js";

export interface LogOptions {
  readonly level: LogLevel;
  /** Values that must never appear in a line, whatever they look like. */
  readonly secrets: readonly Secret[];
  /** On every line: roles, worker name. */
  readonly fields?: object;
  /** Default: standard error, written synchronously, so that the last line before a crash is there. */
  readonly stream?: DestinationStream;
}

/** A `Logger` that can also stand for a part of the program. */
export interface RootLogger extends Logger {
  /** The same log with more fields on every line. */
  child(fields: object): RootLogger;
}

const STDERR = 2;

export function createLogger(options: LogOptions): RootLogger {
  const redactLine = lineRedactor(options.secrets.map((secret) => secret.reveal()));
  const log = pino(
    {
      level: options.level,
      base: { pid: process.pid, ...redactFields(options.fields ?? {}) },
      timestamp: stdTimeFunctions.isoTime,
      mixin: () => ({ ...correlation() }),
      // Fields are made safe before pino sees them; its own serializers would look inside errors again.
      serializers: { err: (value: unknown) => value },
      formatters: { level: (label) => ({ level: label }), log: redactFields },
      hooks: { streamWrite: redactLine },
    },
    options.stream ?? destination({ dest: STDERR, sync: true }),
  );
  return wrap(log);
}

function wrap(log: Pino): RootLogger {
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    child: (fields) => wrap(log.child(redactFields(fields))),
  };
}
