/** SQL with named parameters: `:name` in the text, an object at the call; one prepared statement for each. */
import type { SqlRunner } from "../db/connect.js";

export interface Statement<P extends object> {
  readonly name: string;
  /** With `$1…` in place of the names. */
  readonly text: string;
  readonly order: readonly (keyof P & string)[];
}

/**
 * @param name unique in the program; the statement is prepared once a connection under it
 * @param text `:name` is a parameter (`::type` stays a cast); the same name is the same parameter
 */
export function statement<P extends object>(name: string, text: string): Statement<P> {
  const order: string[] = [];
  const compiled = text.replace(/(?<![:\w]):([a-z_]+)/g, (_, parameter: string) => {
    if (!order.includes(parameter)) order.push(parameter);
    return `$${order.indexOf(parameter) + 1}`;
  });
  return { name, text: compiled, order: order as (keyof P & string)[] };
}

export function run<R, P extends object>(on: SqlRunner, what: Statement<P>, parameters: P): Promise<R[]> {
  return on.sql<R>(
    what.name,
    what.text,
    what.order.map((name) => parameters[name]),
  );
}

/** The first row of a statement that returns at most one. */
export async function runOne<R, P extends object>(
  on: SqlRunner,
  what: Statement<P>,
  parameters: P,
): Promise<R | null> {
  const [row] = await run<R, P>(on, what, parameters);
  return row ?? null;
}
