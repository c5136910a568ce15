/** Ports with a stopwatch: the rooms behind them know nothing of metrics. */
import type { Planner, PlannerSettings } from "../../agent/index.js";
import type { Tx } from "../../db/connect.js";
import type { Operation } from "../../domain/operation.js";
import type { PaymentProvider } from "../../domain/ports/payment-provider.js";
import type { LedgerCtx } from "../../ledger/index.js";
import { addCorrelation, type Metrics, type Tracer } from "../../telemetry/index.js";

const PER_MILLION = 1_000_000n;

/** Counts, times and traces every request to the provider, by its verdict. */
export function measuredProvider(
  provider: PaymentProvider,
  metrics: Metrics,
  tracer: Tracer,
): PaymentProvider {
  const timed = async <T>(
    kind: string,
    work: () => Promise<T>,
    outcomeOf: (value: T) => string,
  ): Promise<T> => {
    const began = performance.now();
    const value = await tracer.span(`provider ${kind}`, {}, work);
    metrics.providerCalled(kind, outcomeOf(value), performance.now() - began);
    return value;
  };
  return {
    buildRequest: (operation) => provider.buildRequest(operation),
    execute: (operation, request, options) => {
      addCorrelation({
        operationId: operation.id,
        attempt: operation.attempts,
        ...(operation.ticketId === null ? {} : { ticketId: operation.ticketId }),
      });
      return timed(
        operation.kind,
        () => provider.execute(operation, request, options),
        (outcome) => outcome.verdict,
      );
    },
    list: (target, options) =>
      timed(
        "list",
        () => provider.list(target, options),
        (listing) => listing.read,
      ),
    listSince: (since, options) =>
      timed(
        "list",
        () => provider.listSince(since, options),
        (listing) => listing.read,
      ),
    read: (ref, options) =>
      timed(
        "read",
        () => provider.read(ref, options),
        (listing) => listing.read,
      ),
    ping: (options) => provider.ping(options),
  };
}

/** Counts, times, traces and prices every call of the model. */
export function measuredPlanner(
  planner: Planner,
  settings: PlannerSettings,
  metrics: Metrics,
  tracer: Tracer,
): Planner {
  return {
    ...planner,
    plan: async (request) => {
      const began = performance.now();
      const answer = await tracer.span("model call", {}, () => planner.plan(request));
      metrics.modelCalled(answer.ok ? "ok" : answer.failure.code, performance.now() - began);
      if (answer.ok) {
        const { inputTokens, outputTokens } = answer.reply.usage;
        const price = settings.price ?? { inputMicroUsd: 0n, outputMicroUsd: 0n };
        const microUsd =
          (BigInt(inputTokens) * price.inputMicroUsd + BigInt(outputTokens) * price.outputMicroUsd) /
          PER_MILLION;
        metrics.modelSpent({ inputTokens, outputTokens, microUsd });
      }
      return answer;
    },
  };
}

/** Counts the states that operations come to, beside whatever else an end leads to. */
export function measuredLedger(ledger: LedgerCtx, metrics: Metrics): LedgerCtx {
  return {
    ...ledger,
    hooks: {
      ...ledger.hooks,
      onSettled: async (tx: Tx, operation: Operation) => {
        await ledger.hooks.onSettled(tx, operation);
        tx.afterCommit(() => metrics.operationMoved(operation.kind, operation.status));
      },
      onIncident: (kind) => metrics.incidentOpened(kind),
    },
  };
}
