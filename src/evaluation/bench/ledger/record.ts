/**
 * The statements of one operation as the product sends them, written down once and turned into a template: what names this
 * operation is replaced by what names another. So the other arms run exactly what the product runs.
 */
import type { OpenDb } from "../../../db/connect.js";
import { fingerprint, idempotencyKey, operationKey } from "../../../domain/identity.js";
import type { Operation } from "../../../domain/operation.js";
import type { Ids } from "../../../domain/ports/clock.js";
import type { Db, SqlRunner, Tx } from "../../../domain/ports/database.js";
import { customerOf, filerOf, type Owner, orderRef, padded, paymentIntent } from "./premises.js";

/** A parameter: fixed text, and what stands in it of the operation; null is NULL. */
export type Template = readonly (string | Slot)[] | null;

export type Step = Travels &
  (
    | { readonly is: "begin" | "commit" }
    | {
        readonly is: "statement";
        readonly name: string;
        readonly text: string;
        readonly parameters: readonly Template[];
      }
  );

interface Travels {
  /** Not waited for: it is sent together with the next one. */
  readonly withNext: boolean;
}
/** Whether it travels alone is known when the next one is asked for. */
type Travelling<T> = T & { withNext: boolean };

/** How often the client waits for the server in these steps. */
export const roundTrips = (steps: readonly Step[]): number =>
  steps.filter(({ withNext }) => !withNext).length;

/** Something that names an operation or its rows. */
export interface Slot {
  /** For operation `n` in a lane. */
  readonly at: (n: number, owner: Owner) => string;
  /** The same in SQL, from `:n`, `:run` and `:ticket` of a pgbench script. */
  readonly sql: string;
}

const six = (expression: string): string => `lpad((${expression})::text, 6, '0')`;
const n = ":n::bigint";

/** What names operation `at`, longest first, so that no name hides in another. */
function names(at: {
  n: number;
  owner: Owner;
  operation: Operation;
  ids: ReadonlyMap<string, string>;
}): [string, Slot][] {
  const { operation, owner } = at;
  const hex = (of: number): string => of.toString(16).padStart(32, "0");
  const made = (prefix: string): [string, Slot][] => {
    const id = at.ids.get(prefix);
    if (id === undefined) return [];
    return [[id, { at: (of) => `${prefix}${hex(of)}`, sql: `('${prefix}' || lpad(to_hex(${n}), 32, '0'))` }]];
  };
  const counted = (prefix: string, of: (k: number) => number, sql: string): [string, Slot] => [
    `${prefix}${padded(of(at.n))}`,
    { at: (k) => `${prefix}${padded(of(k))}`, sql: `('${prefix}' || ${six(sql)})` },
  ];
  const same = (k: number): number => k;
  const print = fingerprint(operation, operation, operation.contractVersion);
  const text = (value: string, prefix: string): [string, Slot] => [
    value,
    { at: (of) => `${prefix}${hex(of)}`, sql: `('${prefix}' || lpad(to_hex(${n}), 32, '0'))` },
  ];
  const list: [string, Slot][] = [
    ...made("op_"),
    ...made("att_"),
    ...made("evd_"),
    text(operationKey(operation), "key-"),
    text(print, "print-"),
    text(idempotencyKey(operation.id), "idem-"),
    counted("ORD-", same, n),
    counted("ord_", same, n),
    counted("pay_", same, n),
    counted("pi_", same, n),
    counted("re_", same, n),
    counted("CUS-", customerOf, `${n} % 500`),
    counted("cus_", customerOf, `${n} % 500`),
    counted("U_FILER", filerOf, `${n} % 50`),
    [owner.runId, { at: (_, lane) => lane.runId, sql: `('run_' || ${six(":lane::bigint")})` }],
    [owner.ticketId, { at: (_, lane) => lane.ticketId, sql: `('tkt_' || ${six(":lane::bigint")})` }],
  ];
  return list.sort(([a], [b]) => b.length - a.length);
}

/** Names that must exist in the shop as they are counted here: refuses to replay what would miss its rows. */
export async function checkNames(db: OpenDb, at: number): Promise<void> {
  const [row] = await db.sql<{ order: string; payment: string; intent: string; customer: string }>(
    undefined,
    `SELECT o.id AS "order", p.id AS payment, p.payment_intent AS intent, o.customer_id AS customer
     FROM orders o JOIN payments p ON p.order_id = o.id WHERE o.ref = $1`,
    [orderRef(at)],
  );
  const right = {
    order: `ord_${padded(at)}`,
    payment: `pay_${padded(at)}`,
    intent: paymentIntent(at),
    customer: `cus_${padded(customerOf(at))}`,
  };
  if (JSON.stringify(row) !== JSON.stringify(right)) {
    throw new Error(`the shop's rows are ${JSON.stringify(row)}, counted on were ${JSON.stringify(right)}`);
  }
}

export type Sent = Travels &
  (
    | { readonly is: "begin" | "commit" }
    | { readonly is: "statement"; name: string; text: string; params: readonly unknown[] }
  );

class Undone extends Error {}

/** A database that writes down what it is asked. `undo`: no transaction is committed. */
export function listen(db: OpenDb, sent: Sent[], options: { undo: boolean } = { undo: false }): Db {
  const runner = (on: SqlRunner, together: boolean): SqlRunner["sql"] => {
    let unanswered: Travelling<Sent> | null = null;
    return async <R>(name: string | undefined, text: string, params?: readonly unknown[]): Promise<R[]> => {
      if (name === undefined) throw new Error("an unnamed statement is no part of the hot path");
      // Asked for in one transaction before the other was answered: they travel together.
      if (together && unanswered !== null) unanswered.withNext = true;
      const asked: Travelling<Sent> = {
        is: "statement",
        withNext: false,
        name,
        text,
        params: params ?? [],
      };
      sent.push(asked);
      unanswered = asked;
      try {
        return await on.sql<R>(name, text, params);
      } finally {
        if (unanswered === asked) unanswered = null;
      }
    };
  };
  return {
    kind: "db",
    sql: runner(db, false),
    failureOf: (error) => db.failureOf(error),
    tx: async (fn, how) => {
      let value: { is: Awaited<ReturnType<typeof fn>> } | undefined;
      try {
        return await db.tx(async (tx) => {
          sent.push({ is: "begin", withNext: true });
          const heard: Tx = {
            kind: "tx",
            afterCommit: (callback) => tx.afterCommit(callback),
            later: (name, text, params) => {
              sent.push({ is: "statement", withNext: true, name, text, params: params ?? [] });
              tx.later(name, text, params);
            },
            sql: runner(tx, true),
          };
          value = { is: await fn(heard) };
          if (options.undo) throw new Undone();
          sent.push({ is: "commit", withNext: false });
          return value.is;
        }, how);
      } catch (error) {
        if (error instanceof Undone && value !== undefined) return value.is;
        throw error;
      }
    },
  };
}

export interface Recorder {
  readonly db: Db;
  readonly ids: Ids;
}

/** Runs `work` on a database that listens and returns the template of what it sent. */
export async function record(
  db: OpenDb,
  ids: Ids,
  at: { n: number; owner: Owner },
  work: (recorder: Recorder) => Promise<Operation>,
): Promise<Step[]> {
  const sent: Sent[] = [];
  const made = new Map<string, string>();
  const operation = await work({
    db: listen(db, sent),
    ids: {
      random: () => ids.random(),
      next: (prefix) => {
        const id = ids.next(prefix);
        if (made.has(prefix)) throw new Error(`a second id ${prefix} in one operation`);
        made.set(prefix, id);
        return id;
      },
    },
  });
  const slots = names({ ...at, operation, ids: made });
  return sent.map((one) =>
    one.is === "statement"
      ? {
          is: one.is,
          withNext: one.withNext,
          name: one.name,
          text: one.text,
          parameters: one.params.map((param) => template(param, slots)),
        }
      : one,
  );
}

/** The text that the driver sends for a value. */
export function wireText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `{${value.map(arrayItem).join(",")}}`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function arrayItem(value: unknown): string {
  const text = wireText(value);
  return text === null ? "NULL" : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function template(value: unknown, slots: readonly [string, Slot][]): Template {
  const text = wireText(value);
  if (text === null) return null;
  let parts: (string | Slot)[] = [text];
  for (const [name, slot] of slots) {
    parts = parts.flatMap((part) =>
      typeof part === "string"
        ? part.split(name).flatMap((piece, index) => (index === 0 ? [piece] : [slot, piece]))
        : [part],
    );
  }
  return parts.filter((part) => part !== "");
}

/** A template for operation `of`, as text. */
export function filled(parameter: Template, of: number, owner: Owner): string | null {
  if (parameter === null) return null;
  return parameter.map((part) => (typeof part === "string" ? part : part.at(of, owner))).join("");
}
