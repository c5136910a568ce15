/** One process of the product: opens what it needs, runs its roles, and closes everything in order. */
import os from "node:os";
import type { Config } from "../config/index.js";
import { openDb } from "../db/connect.js";
import type { Directory } from "../domain/ports/directory.js";
import { openQueues, startSchedules } from "../jobs/index.js";
import { recordPolicyActivated } from "../ledger/index.js";
import { createPayments, createWebhookVerifier } from "../payments/index.js";
import { activePolicy, watchPolicyFile } from "../policy/index.js";
import {
  createDirectory,
  createNotices,
  createSlackWeb,
  type SlackContext,
  STORE_WITHIN,
  startSlack,
} from "../slack/index.js";
import { createLogger, createMetrics, createTracer } from "../telemetry/index.js";
import { composeContexts } from "./compose/contexts.js";
import { handlers, schedules } from "./compose/handlers.js";
import { measuredUseCases } from "./compose/measured-use-cases.js";
import { routes } from "./compose/routes.js";
import { sealSecrets, sealsOf } from "./compose/seals.js";
import { slackConfig, slackSecrets } from "./compose/slack.js";
import { takeSnapshot } from "./compose/snapshot.js";
import { opsContext, useCases } from "./compose/use-cases.js";
import { armFromEnvironment } from "./failpoints.js";
import { startHealthServer } from "./health-server.js";
import { schemaReady } from "./schema-ready.js";
import { systemClock, systemIds } from "./system.js";

export type Role = "app" | "worker";
export type ProcessConfig = Config<"database" | "slack" | "payments" | "seals">;

export interface RunningProcess {
  readonly port: number;
  /** Stops claiming, lets what runs end within a bound, closes everything. */
  stop(): Promise<void>;
}

/** Storing an arrival takes a millisecond or two; they are opened with the first one. */
const ARRIVAL_CONNECTIONS = 2;
/** Jobs of each lane that one worker works on at once. */
const CONCURRENCY = 12;
const STOP_WITHIN_MS = 30_000;

export async function startProcess(
  config: ProcessConfig,
  roles: ReadonlySet<Role>,
  stopping: AbortSignal,
): Promise<RunningProcess> {
  const worker = `${os.hostname()}:${process.pid}`;
  const log = createLogger({
    level: config.logLevel,
    secrets: [
      config.database.url,
      config.payments.secretKey,
      config.payments.webhookSecret,
      ...slackSecrets(config.slack),
      ...sealSecrets(config.seals),
      ...(config.redisUrl === null ? [] : [config.redisUrl]),
      ...(config.planner.kind === "messages-api" ? [config.planner.apiKey] : []),
    ],
    fields: { roles: [...roles].join(",") },
  });
  for (const warning of config.warnings) log.warn({}, warning);
  armFromEnvironment(config.failpoints, log);
  const metrics = createMetrics({ processMetrics: true });
  const tracer = createTracer({
    endpoint: config.traceEndpoint,
    serviceName: "countersign",
    instance: worker,
    clock: systemClock,
    log,
  });
  const seals = sealsOf(config.seals);
  const closers: (() => Promise<void>)[] = [() => tracer.stop(), goOnAfterRejections(log)];
  const close = async (): Promise<void> => {
    for (const step of closers.splice(0).reverse()) {
      await step().catch((error: unknown) => log.warn({ err: error }, "something did not close cleanly"));
    }
  };
  try {
    const databaseUrl = config.database.url.reveal();
    const db = openDb({
      url: databaseUrl,
      applicationName: `countersign-${[...roles].join("-")}`,
      poolSize: config.database.poolSize,
      onIdleError: (error) => log.warn({ err: error }, "a database connection broke and is replaced"),
    });
    closers.push(() => db.close());
    const arrivals = openDb({
      url: databaseUrl,
      applicationName: "countersign-arrivals",
      poolSize: ARRIVAL_CONNECTIONS,
      ...STORE_WITHIN,
      onIdleError: (error) => log.warn({ err: error }, "a connection for arrivals broke and is replaced"),
    });
    closers.push(() => arrivals.close());
    await schemaReady({ databaseUrl, port: config.port, log, stopping });
    const policy = await watchPolicyFile({
      db,
      file: config.policyFile,
      record: recordPolicyActivated(seals),
      onActivated: (loaded) => log.info({ policy: loaded.hash }, "the changed policy file is in force"),
      onInvalid: (error) =>
        log.error({ err: error }, "the changed policy file is not valid; the one before it stays"),
      onOther: (hashes) =>
        log.error(
          hashes,
          "another policy is in force than this file says: a process with another file was started since",
        ),
      onError: (error) => log.warn({ err: error }, "the policy could not be looked at"),
    });
    closers.push(() => policy.stop());

    const queues = openQueues({
      redisUrl: config.redisUrl === null ? null : config.redisUrl.reveal(),
      databaseUrl,
      lockMs: config.timing.leaseMs,
      log,
      metrics,
      tracer,
      ticks: () => performance.now(),
    });
    closers.push(() => queues.close());
    const { wake } = queues;

    const slackSettings = slackConfig(config.slack, config.port, config.timing);
    const web = createSlackWeb(slackSettings, log, metrics.slack);
    closers.push(() => web.close());
    const policyNow = async () => (await activePolicy(db)).policy;
    const directory: Directory = createDirectory({ db, web, clock: systemClock, log, policy: policyNow });
    const notices = createNotices({ ids: systemIds, wake, config: slackSettings });
    const payments = createPayments({
      secretKey: config.payments.secretKey.reveal(),
      apiUrl: config.payments.apiUrl,
      clock: systemClock,
    });
    closers.push(() => payments.close());

    const contexts = composeContexts({
      config,
      db,
      wake,
      notices,
      directory,
      provider: payments,
      verifyWebhook: createWebhookVerifier(config.payments.webhookSecret.reveal()),
      log,
      metrics,
      tracer,
      worker,
      seals,
    });
    // The port is open before Slack has said hello: until then this process is not ready, or the first event would be lost.
    let slackHealth: () => { connected: boolean; detail: string } = () =>
      roles.has("app")
        ? { connected: false, detail: "Slack is being connected." }
        : { connected: true, detail: "This process does not listen to Slack." };
    const readiness = async (): Promise<readonly { part: string; ok: boolean; detail: string }[]> => {
      const [database, queue] = await Promise.all([databaseAnswers(db), queues.health()]);
      const slack = slackHealth();
      return [
        { part: "database", ...database },
        { part: "queue", ok: queue.ok, detail: queue.detail },
        { part: "slack", ok: slack.connected, detail: slack.detail },
      ];
    };
    const processParts = { payments, readiness, policy: policy.standing };
    const slack: SlackContext = {
      db,
      arrivals,
      ids: systemIds,
      clock: systemClock,
      wake,
      web,
      directory,
      log,
      metrics: metrics.slack,
      config: slackSettings,
      policy: policyNow,
      useCases: measuredUseCases(useCases(contexts, processParts), (what) => metrics.forbidden(what)),
    };
    metrics.observe(() =>
      takeSnapshot(db, queues, { slack: () => (roles.has("app") ? slackHealth().connected : null) }),
    );
    const paths = routes({ dispatch: contexts.dispatch, metrics, readiness: { check: readiness } });
    const port = await listen();

    if (roles.has("worker")) {
      const parts = {
        contexts,
        slack,
        ops: opsContext(contexts, processParts),
        metrics,
        ticks: () => performance.now(),
      };
      queues.work(handlers(parts), CONCURRENCY);
      const timers = startSchedules(schedules(parts, config.timing.reconcileEveryMs), {
        log,
        random: () => systemIds.random(),
      });
      closers.push(() => timers.stop());
    }
    log.info({ port, queue: config.redisUrl === null ? "postgres" : "redis" }, "started");
    return { port, stop: () => bounded(close, log) };

    async function listen(): Promise<number> {
      if (roles.has("app")) {
        const handle = await startSlack(slack, { routes: paths });
        closers.push(() => handle.stop());
        slackHealth = () => handle.health();
        return handle.port;
      }
      const server = await startHealthServer(config.port, paths, log);
      closers.push(() => server.close());
      return server.port;
    }
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Libraries reject promises that nobody holds (Bolt on strange bodies, a socket on its way down). Nothing of ours hangs on them, for
 * what matters is a row: the process goes on, and the log says what it was. An exception still ends it.
 */
function goOnAfterRejections(log: { error(fields: object, message: string): void }): () => Promise<void> {
  const tell = (reason: unknown): void =>
    log.error({ err: reason }, "a rejection that nobody waited for; the process goes on");
  process.on("unhandledRejection", tell);
  return async () => {
    process.off("unhandledRejection", tell);
  };
}

async function databaseAnswers(db: {
  sql: ReturnType<typeof openDb>["sql"];
}): Promise<{ ok: boolean; detail: string }> {
  try {
    await db.sql("app.ping", "SELECT 1");
    return { ok: true, detail: "The database answers." };
  } catch {
    return { ok: false, detail: "The database does not answer." };
  }
}

async function bounded(
  close: () => Promise<void>,
  log: { error(fields: object, message: string): void },
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.error({}, "what was under way did not end in time; leases run out by themselves");
      resolve();
    }, STOP_WITHIN_MS);
  });
  await Promise.race([close(), late]);
  clearTimeout(timer);
}
