/**
 * The metrics of the product, each declared once with its documented name (docs/metrics.md; a test compares). Two kinds:
 *
 *  - counted where it happens (counters, histograms): cheap, never throws, never waits;
 *  - read when somebody scrapes (gauges over rows): from one `Snapshot` that the composition root knows how to take. A snapshot that
 *    fails or is slow leaves the last values and shows in `countersign_snapshot_ok`.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What rows say at this moment. Ages in milliseconds, 0 when there is nothing. Counts only what is open or due, never history. */
export interface Snapshot {
  readonly operations: readonly { readonly kind: string; readonly status: string; readonly count: number }[];
  readonly oldestUnknownAgeMs: number;
  readonly oldestQuarantinedAgeMs: number;
  /** Since the first try of the oldest operation that certainly was not carried out and is tried again. */
  readonly oldestTriedAgeMs: number;
  readonly approvalsPending: number;
  readonly oldestApprovalAgeMs: number;
  readonly runs: readonly { readonly state: string; readonly count: number }[];
  readonly outboxWaiting: number;
  /** How long the oldest message or edit of a card that may be sent has been waiting. */
  readonly outboxLagMs: number;
  readonly inboxWaiting: number;
  readonly incidentsOpen: number;
  readonly frozenKinds: number;
  /** How long the oldest row has been due for a worker. */
  readonly oldestDueAgeMs: number;
  readonly queues: readonly { readonly kind: string; readonly waiting: number }[];
  /** null: this process does not listen to Slack, and has nothing to say of it. */
  readonly slackConnected: boolean | null;
  readonly queueConnected: boolean;
}

export interface Metrics {
  /** An operation changed its status. */
  operationMoved(kind: string, to: string): void;
  /** A request to the provider ended. */
  providerCalled(kind: string, outcome: string, ms: number): void;
  runEnded(state: string): void;
  /** Something was asked for that authority forbids; the words are in docs/metrics.md. */
  forbidden(what: string): void;
  webhookUnused(): void;
  /** The provider's list of what was made lately was held against the ledger, or could not be read. */
  booksCompared(outcome: "read" | "unread"): void;
  incidentOpened(kind: string): void;
  modelCalled(outcome: string, ms: number): void;
  modelSpent(spend: { inputTokens: number; outputTokens: number; microUsd: bigint }): void;
  jobDone(kind: string, outcome: "ok" | "failed", ms: number): void;
  /** A wake-up could not be queued; the sweeper will find the row. */
  wakeLost(kind: string): void;
  readonly slack: {
    acknowledged(kind: string, ms: number): void;
    rateLimited(method: string): void;
    called(method: string, outcome: string): void;
    refused(why: string): void;
    forbidden(what: string): void;
  };
  /** Says how to take a snapshot; called at most once per `SNAPSHOT_EVERY_MS` and only when scraped. */
  observe(take: () => Promise<Snapshot>): void;
  /** What `/metrics` answers. */
  expose(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/** Several scrapers must not multiply the load on the database. */
const SNAPSHOT_EVERY_MS = 5_000;
/** A scrape that waits longer for rows answers with the last ones. */
const SNAPSHOT_PATIENCE_MS = 3_000;

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const MS = 1_000;
const MICRO = 1_000_000;

/** The words of `forbidden_attempts_total`; docs/metrics.md says what each means. */
const FORBIDDEN = [
  "scope",
  "policy",
  "click",
  "file",
  "binding",
  "run",
  "further",
  "ops",
  "resolve",
  "freeze",
  "request",
  "webhook",
] as const;

export function createMetrics(options: { readonly processMetrics: boolean }): Metrics {
  const registry = new Registry();
  if (options.processMetrics) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name: `countersign_${name}`, help, labelNames: [...labelNames], registers });
  const seconds = <L extends string>(name: string, help: string, labelNames: readonly L[]): Histogram<L> =>
    new Histogram({
      name: `countersign_${name}`,
      help,
      labelNames: [...labelNames],
      buckets: SECONDS,
      registers,
    });

  const moved = counter("operation_transitions_total", "Operations that reached a status", [
    "kind",
    "status",
  ]);
  const provider = seconds("provider_call_seconds", "Requests to the payment provider by outcome", [
    "kind",
    "outcome",
  ]);
  const runsEnded = counter("runs_ended_total", "Runs that ended, by end state", ["state"]);
  const forbidden = counter("forbidden_attempts_total", "Attempts that authority forbids, refused", ["what"]);
  // What is counted for the first time was none before: an alert compares with that.
  for (const what of FORBIDDEN) forbidden.inc({ what }, 0);
  const webhooksUnused = counter(
    "webhooks_unused_total",
    "Webhooks with a good signature and of a form that is of no use here",
    [],
  );
  const books = counter(
    "books_compared_total",
    "Passes that held the provider's list of what was made lately against the ledger, or could not read it",
    ["outcome"],
  );
  for (const outcome of ["read", "unread"] as const) books.inc({ outcome }, 0);
  const incidents = counter("incidents_total", "Incidents opened", ["kind"]);
  const model = seconds("model_call_seconds", "Calls of the model by outcome", ["outcome"]);
  const tokens = counter("model_tokens_total", "Tokens used by the model", ["direction"]);
  const spend = counter("model_spend_usd_total", "US dollars spent on the model", []);
  const jobs = seconds("job_seconds", "Jobs worked on, by outcome", ["kind", "outcome"]);
  const wakeLost = counter(
    "wakeups_lost_total",
    "Wake-ups that could not be queued; the sweeper finds the rows",
    ["kind"],
  );
  const ack = seconds("slack_ack_seconds", "From Slack's request to our acknowledgement", ["kind"]);
  const limited = counter("slack_rate_limited_total", "Times that Slack asked us to slow down (429)", [
    "method",
  ]);
  const called = counter("slack_calls_total", "Calls to Slack by outcome", ["method", "outcome"]);
  const refused = counter("slack_refused_total", "Requests refused before they were stored", ["why"]);
  const gauges = snapshotGauges(registers);

  let take: (() => Promise<Snapshot>) | undefined;
  let takenAt = Number.NEGATIVE_INFINITY;
  const refresh = async (): Promise<void> => {
    if (take === undefined || performance.now() - takenAt < SNAPSHOT_EVERY_MS) return;
    takenAt = performance.now();
    try {
      gauges.set(await inTime(take(), SNAPSHOT_PATIENCE_MS));
    } catch {
      gauges.failed();
    }
  };

  return {
    operationMoved: (kind, status) => moved.inc({ kind, status }),
    providerCalled: (kind, outcome, ms) => provider.observe({ kind, outcome }, ms / MS),
    runEnded: (state) => runsEnded.inc({ state }),
    forbidden: (what) => forbidden.inc({ what }),
    webhookUnused: () => webhooksUnused.inc(),
    booksCompared: (outcome) => books.inc({ outcome }),
    incidentOpened: (kind) => incidents.inc({ kind }),
    modelCalled: (outcome, ms) => model.observe({ outcome }, ms / MS),
    modelSpent: ({ inputTokens, outputTokens, microUsd }) => {
      tokens.inc({ direction: "input" }, inputTokens);
      tokens.inc({ direction: "output" }, outputTokens);
      spend.inc(Number(microUsd) / MICRO);
    },
    jobDone: (kind, outcome, ms) => jobs.observe({ kind, outcome }, ms / MS),
    wakeLost: (kind) => wakeLost.inc({ kind }),
    slack: {
      acknowledged: (kind, ms) => ack.observe({ kind }, ms / MS),
      rateLimited: (method) => limited.inc({ method }),
      called: (method, outcome) => called.inc({ method, outcome }),
      refused: (why) => {
        refused.inc({ why });
        if (why !== "unreadable") forbidden.inc({ what: "request" });
      },
      forbidden: (what) => forbidden.inc({ what }),
    },
    observe: (how) => {
      take = how;
    },
    expose: async () => {
      await refresh();
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

function snapshotGauges(registers: Registry[]): { set(snapshot: Snapshot): void; failed(): void } {
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> =>
    new Gauge({ name: `countersign_${name}`, help, labelNames: [...labelNames], registers });
  const operations = gauge("operations_open", "Operations that have not ended", ["kind", "status"]);
  const unknownAge = gauge(
    "oldest_unknown_age_seconds",
    "Age of the oldest operation whose outcome is unknown",
  );
  const quarantinedAge = gauge(
    "oldest_quarantined_age_seconds",
    "Age of the oldest operation that waits for a person",
  );
  const triedAge = gauge(
    "oldest_tried_age_seconds",
    "Since the first try of the oldest operation that certainly was not carried out and is tried again",
  );
  const approvals = gauge("approvals_pending", "Approvals that wait for a decision");
  const approvalAge = gauge("oldest_approval_age_seconds", "Age of the oldest approval that waits");
  const runs = gauge("runs_open", "Runs that have not ended", ["state"]);
  const outbox = gauge("outbox_waiting", "Messages to Slack that are not sent yet");
  const outboxLag = gauge(
    "outbox_lag_seconds",
    "How long the oldest message or edit of a card that may be sent has been waiting",
  );
  const inbox = gauge("inbox_waiting", "Slack events stored and not yet worked on");
  const incidents = gauge("incidents_open", "Incidents that nobody has closed");
  const frozen = gauge("frozen_kinds", "Kinds of effects that on-call has frozen");
  const oldestDue = gauge("oldest_due_age_seconds", "How long the oldest row has been due for a worker");
  const queue = gauge("queue_waiting", "Jobs waiting in the queue", ["kind"]);
  const slackUp = gauge("slack_connected", "1 while Slack can reach us");
  const queueUp = gauge("queue_connected", "1 while the queue answers");
  // Only who listens says whether it can: a worker alone would hide that nobody does.
  slackUp.remove();
  const ok = gauge("snapshot_ok", "1 when the values read from the database are of this scrape");
  return {
    set: (now) => {
      for (const labelled of [operations, runs, queue]) labelled.reset();
      for (const { kind, status, count } of now.operations) operations.set({ kind, status }, count);
      for (const { state, count } of now.runs) runs.set({ state }, count);
      for (const { kind, waiting } of now.queues) queue.set({ kind }, waiting);
      unknownAge.set(now.oldestUnknownAgeMs / MS);
      quarantinedAge.set(now.oldestQuarantinedAgeMs / MS);
      triedAge.set(now.oldestTriedAgeMs / MS);
      approvals.set(now.approvalsPending);
      approvalAge.set(now.oldestApprovalAgeMs / MS);
      outbox.set(now.outboxWaiting);
      outboxLag.set(now.outboxLagMs / MS);
      inbox.set(now.inboxWaiting);
      incidents.set(now.incidentsOpen);
      frozen.set(now.frozenKinds);
      oldestDue.set(now.oldestDueAgeMs / MS);
      if (now.slackConnected === null) slackUp.remove();
      else slackUp.set(now.slackConnected ? 1 : 0);
      queueUp.set(now.queueConnected ? 1 : 0);
      ok.set(1);
    },
    failed: () => ok.set(0),
  };
}

function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the snapshot took too long")), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
