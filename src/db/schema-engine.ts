/**
 * Prisma's schema engine, compiled to WebAssembly, with an adapter on pg whose two gaps are closed here:
 *
 *  - it cuts a script at every semicolon, also inside function bodies and comments, and sends the pieces one by one. Sent whole,
 *    PostgreSQL parses it itself and runs it as one transaction: a migration happens completely or not at all;
 *  - it does not know the catalogue's type `"char"`, without which the live schema cannot be described.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PrismaPg } from "@prisma/adapter-pg";
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
} from "@prisma/driver-adapter-utils";
import type { SchemaEngine } from "@prisma/schema-engine-wasm/schema_engine_bg";
import pg from "pg";

type EngineModule = typeof import("@prisma/schema-engine-wasm/schema_engine_bg");

export interface EngineAdapter {
  readonly factory: SqlMigrationAwareDriverAdapterFactory;
  /** What PostgreSQL said about the last script that failed, with its line. */
  scriptFailure(): string | undefined;
  dispose(): Promise<void>;
}

/** Runs `fn` with an engine on the database at `url`; `datamodels` are [path, content] of schema files it should know. */
export async function withEngine<T>(
  url: string,
  fn: (engine: SchemaEngine, adapter: EngineAdapter) => Promise<T>,
  datamodels?: [string, string][],
): Promise<T> {
  const engines = await loadEngine();
  const adapter = engineAdapter(url);
  const bound = bindMigrationAwareSqlAdapterFactory(adapter.factory);
  const engine = await engines.SchemaEngine.new({ datamodels }, () => {}, bound);
  try {
    return await fn(engine, adapter);
  } finally {
    engine.free();
    await adapter.dispose();
  }
}

function engineAdapter(url: string): EngineAdapter {
  const inner = new PrismaPg({ connectionString: url, application_name: "countersign-migrate" });
  const opened: SqlDriverAdapter[] = [];
  let failure: string | undefined;
  return {
    factory: {
      provider: inner.provider,
      adapterName: inner.adapterName,
      connect: async () => {
        const adapter = await inner.connect();
        opened.push(adapter);
        readSingleCharacters(adapter, adapter.underlyingDriver());
        adapter.executeScript = async (script) => {
          try {
            await adapter.underlyingDriver().query(script);
          } catch (error) {
            failure = describe(error, script);
            throw error;
          }
        };
        return adapter;
      },
      connectToShadowDb: () => inner.connectToShadowDb(),
    },
    scriptFailure: () => failure,
    dispose: async () => {
      await Promise.all(opened.map((adapter) => adapter.dispose()));
    },
  };
}

/** OID of `"char"`, the one-byte type of the system catalogue, and of text, as which it is read. */
const CHAR_OID = 18;
const TEXT_OID = 25;

/** Lets `"char"` through the adapter as text, and tells the engine afterwards which columns were single characters. */
function readSingleCharacters(adapter: SqlDriverAdapter, pool: pg.Pool): void {
  const characters = new WeakMap<object, readonly number[]>();
  const query = pool.query.bind(pool) as (config: unknown, values?: unknown) => Promise<pg.QueryResult>;
  Object.assign(pool, {
    query: async (config: unknown, values?: unknown): Promise<pg.QueryResult> => {
      const result = await query(config, values);
      const found: number[] = [];
      for (const [index, field] of (result.fields ?? []).entries()) {
        if (field.dataTypeID !== CHAR_OID) continue;
        field.dataTypeID = TEXT_OID;
        found.push(index);
      }
      if (found.length > 0) characters.set(result.rows, found);
      return result;
    },
  });
  const queryRaw = adapter.queryRaw.bind(adapter);
  adapter.queryRaw = async (sqlQuery) => {
    const set = await queryRaw(sqlQuery);
    for (const index of characters.get(set.rows) ?? []) set.columnTypes[index] = ColumnTypeEnum.Character;
    return set;
  };
}

function describe(error: unknown, script: string): string {
  if (!(error instanceof pg.DatabaseError)) return String(error);
  const position = Number(error.position);
  const line = Number.isInteger(position) ? script.slice(0, position).split("\n").length : undefined;
  const where = line === undefined ? "" : ` at line ${line} of the script`;
  return `${error.message} (${error.code ?? "no code"})${where}`;
}

let loaded: Promise<EngineModule> | undefined;

/** Instantiates the engine by hand: its entry point imports a .wasm file, which Node 20 cannot. */
function loadEngine(): Promise<EngineModule> {
  loaded ??= (async () => {
    const engine = await import("@prisma/schema-engine-wasm/schema_engine_bg");
    const here = createRequire(import.meta.url).resolve("@prisma/schema-engine-wasm/schema_engine_bg");
    const bytes = readFileSync(join(dirname(here), "schema_engine_bg.wasm"));
    const { instance } = await wasm().instantiate(bytes, { "./schema_engine_bg.js": importsOf(engine) });
    // The engine leaves its last words here before it traps; without the registry the trap hides them.
    const panics: string[] = [];
    Object.assign(globalThis, {
      PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => panics.push(message) },
    });
    engine.__wbg_set_wasm(instance.exports);
    const start = instance.exports["__wbindgen_start"];
    if (typeof start === "function") start();
    return engine;
  })();
  return loaded;
}

/** The engine's imports, except that its lock timeout (ten seconds, never cleared) does not hold the process open. */
function importsOf(engine: EngineModule): Record<string, unknown> {
  const imports: Record<string, unknown> = { ...engine };
  for (const name of Object.keys(imports).filter((key) => key.startsWith("__wbg_setTimeout_"))) {
    imports[name] = (fn: () => void, ms: number) => setTimeout(fn, ms).unref();
  }
  return imports;
}

/** Node's WebAssembly, as far as it is used here; its types come only with those of a browser. */
interface Wasm {
  instantiate(
    bytes: Uint8Array,
    imports: Record<string, unknown>,
  ): Promise<{ instance: { exports: Record<string, unknown> } }>;
}

function wasm(): Wasm {
  return (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;
}
