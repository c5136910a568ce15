/**
 * Statements that travel together: written to the socket at once, answered together, ended by a single Sync. The server runs them in
 * their order and skips what follows the first that fails, so that BEGIN can travel with the first statement of a transaction and
 * COMMIT with its last.
 *
 * 1. Each statement is parsed once a connection; its columns are described then and not asked for again. (A result that changes
 *    under a prepared statement is an error of the server's, never another shape.)
 * 2. Statements that pg's own queries have prepared on the connection (Prisma's) are the same statements here, under the same name.
 * 3. A batch fails as a whole with the first error. How many statements completed before it is not told: in a transaction it makes
 *    no difference, and outside one a batch has one statement.
 */
import type pg from "pg";

export interface BatchStatement {
  /** Stands for this text alone, which whoever opened the pool sees to; undefined: parsed anew each time. */
  readonly name: string | undefined;
  readonly text: string;
  /** As the wire has them. */
  readonly values: readonly (string | Buffer | null)[];
}

/** One statement's result. */
export interface BatchAnswer {
  readonly rows: readonly unknown[];
  /** The server's words for what was done: `INSERT 0 1`, `COMMIT`. */
  readonly tag: string;
}

interface Column {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}
interface RowShape {
  readonly columns: readonly Column[];
  /** A row of nulls: rows made from it are of one hidden class. */
  readonly blank: Readonly<Record<string, null>>;
}
const NO_ROWS: RowShape = { columns: [], blank: {} };

/** What pg's connection keeps and its types do not name: statements that are parsed, by name. */
interface PgConnection extends pg.Connection {
  readonly parsedStatements: Record<string, string>;
}

const shapes = new WeakMap<pg.Connection, Map<string, RowShape>>();

function shapesOf(connection: pg.Connection): Map<string, RowShape> {
  const known = shapes.get(connection);
  if (known !== undefined) return known;
  const none = new Map<string, RowShape>();
  shapes.set(connection, none);
  return none;
}

/** Runs the statements on a client that nothing else uses meanwhile; one answer each, in their order. */
export function runBatch(
  client: pg.ClientBase,
  types: pg.CustomTypesConfig,
  statements: readonly BatchStatement[],
): Promise<BatchAnswer[]> {
  return new Promise((resolve, reject) => {
    client.query(new Batch(types, statements, resolve, reject));
  });
}

/** The part of a query that pg's client calls back; it reads no `name` of it, so the parsed statements are kept here. */
class Batch implements pg.Submittable {
  readonly #types: pg.CustomTypesConfig;
  readonly #statements: readonly BatchStatement[];
  readonly #resolve: (answers: BatchAnswer[]) => void;
  readonly #reject: (error: unknown) => void;
  readonly #answers: BatchAnswer[] = [];
  #connection: PgConnection | undefined;
  #shapes = new Map<string, RowShape>();
  /** Of the statement whose answer is being read; undefined: not described in this batch. */
  #shape: RowShape | undefined;
  #rows: unknown[] = [];
  #broken: unknown;
  /** Texts under their names, in the order in which the server will say that it has parsed them. */
  #parsing: (readonly [name: string, text: string])[] = [];

  constructor(
    types: pg.CustomTypesConfig,
    statements: readonly BatchStatement[],
    resolve: (answers: BatchAnswer[]) => void,
    reject: (error: unknown) => void,
  ) {
    this.#types = types;
    this.#statements = statements;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** pg takes a returned error for a query that was not sent. */
  submit(to: pg.Connection): Error | null {
    const connection = to as PgConnection;
    this.#connection = connection;
    this.#shapes = shapesOf(connection);
    connection.stream.cork();
    try {
      for (const statement of this.#statements) this.#write(connection, statement);
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
    if (this.#parsing.length > 0) connection.on("parseComplete", this.#onParsed);
    return null;
  }

  #write(connection: PgConnection, { name, text, values }: BatchStatement): void {
    const parsed =
      name !== undefined &&
      (connection.parsedStatements[name] !== undefined || this.#parsing.some(([other]) => other === name));
    if (!parsed) {
      connection.parse({ name: name ?? "", text, types: [] }, true);
      this.#parsing.push([name ?? "", text]);
    }
    connection.bind({ portal: "", statement: name ?? "", values: [...values] }, true);
    if (name === undefined || !this.#shapes.has(name)) connection.describe({ type: "P", name: "" }, true);
    connection.execute(null, true);
  }

  readonly #onParsed = (): void => {
    const [name, text] = this.#parsing.shift() ?? ["", ""];
    if (name !== "" && this.#connection !== undefined) this.#connection.parsedStatements[name] = text;
  };

  #end(): void {
    this.#connection?.off("parseComplete", this.#onParsed);
  }

  handleRowDescription({ fields }: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    const columns = fields.map(({ name, dataTypeID }) => ({
      name,
      parse: this.#types.getTypeParser(dataTypeID, "text") as (text: string) => unknown,
    }));
    this.#shape = { columns, blank: Object.fromEntries(columns.map(({ name }) => [name, null])) };
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    try {
      const { columns, blank } = this.#shapeNow();
      const row: Record<string, unknown> = { ...blank };
      for (let at = 0; at < columns.length; at += 1) {
        const [column, text] = [columns[at], fields[at]];
        if (column !== undefined && text !== undefined && text !== null)
          row[column.name] = column.parse(text);
      }
      this.#rows.push(row);
    } catch (error) {
      this.#broken ??= error;
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    const { name } = this.#now();
    if (name !== undefined && !this.#shapes.has(name)) this.#shapes.set(name, this.#shape ?? NO_ROWS);
    this.#answers.push({ rows: this.#rows, tag: text });
    this.#shape = undefined;
    this.#rows = [];
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: "" });
  }

  handleReadyForQuery(): void {
    this.#end();
    if (this.#broken !== undefined) this.#reject(this.#broken);
    else this.#resolve(this.#answers);
  }

  /** From the server or, when the connection is lost, from the client. */
  handleError(error: unknown): void {
    this.#end();
    this.#reject(error);
  }

  handlePortalSuspended(): void {
    this.#broken ??= new Error("a portal was suspended although all of its rows were asked for");
  }

  handleCopyInResponse(connection: { sendCopyFail(message: string): void }): void {
    connection.sendCopyFail("COPY has no source here");
  }

  handleCopyData(): void {
    this.#broken ??= new Error("COPY has no reader here");
  }

  #now(): BatchStatement {
    const statement = this.#statements[this.#answers.length];
    if (statement === undefined) throw new Error("the server answered more statements than were sent");
    return statement;
  }

  #shapeNow(): RowShape {
    const { name } = this.#now();
    const shape = this.#shape ?? (name === undefined ? undefined : this.#shapes.get(name));
    if (shape === undefined) throw new Error("a row came before its description");
    return shape;
  }
}
