/**
 * Six providers, from one that promises nothing to one that promises more than Stripe. Each is said twice: as the contract that
 * the ledger recovers by, and as what the sandbox keeps to.
 */
import type { EffectContract } from "../../domain/contract.js";
import type { ProviderPromises } from "../../sandbox/payments/index.js";

export const CONTRACT_NAMES = [
  "none",
  "strong-read",
  "eventual-read",
  "key",
  "key-ttl",
  "key-ttl-strong-read",
] as const;
export type ContractName = (typeof CONTRACT_NAMES)[number];

export interface ProviderContract {
  readonly name: ContractName;
  readonly ledger: EffectContract;
  readonly sandbox: ProviderPromises;
}

const HOUR_MS = 3_600_000;
/** Life of a key where it ends. */
export const KEY_TTL_MS = 24 * HOUR_MS;
/** A provider whose keys live for ever, as far as any episode can tell. */
const FOREVER_MS = 1_000_000 * 24 * HOUR_MS;
/** Eventual lists show an effect after this long. */
export const LAG_MS = 60_000;
/** Where a bound is promised, nothing commits later than this after it was sent. */
export const BOUND_MS = 30_000;

type Terms = Pick<EffectContract, "keyed" | "keyTtlMs" | "readback" | "inflightBoundMs">;

const TERMS: Readonly<Record<ContractName, Terms>> = {
  none: { keyed: false, keyTtlMs: null, readback: { kind: "none" }, inflightBoundMs: null },
  "strong-read": { keyed: false, keyTtlMs: null, readback: { kind: "strong" }, inflightBoundMs: BOUND_MS },
  "eventual-read": {
    keyed: false,
    keyTtlMs: null,
    readback: { kind: "eventual", lagMs: LAG_MS },
    inflightBoundMs: null,
  },
  key: { keyed: true, keyTtlMs: null, readback: { kind: "eventual", lagMs: LAG_MS }, inflightBoundMs: null },
  "key-ttl": {
    keyed: true,
    keyTtlMs: KEY_TTL_MS,
    readback: { kind: "eventual", lagMs: LAG_MS },
    inflightBoundMs: null,
  },
  "key-ttl-strong-read": {
    keyed: true,
    keyTtlMs: KEY_TTL_MS,
    readback: { kind: "strong" },
    inflightBoundMs: BOUND_MS,
  },
};

export function providerContract(name: ContractName): ProviderContract {
  const terms = TERMS[name];
  return {
    name,
    ledger: {
      kind: "refund",
      version: `matrix-${name}/1`,
      local: false,
      cancellable: false,
      sources: ["the sandbox keeps to it"],
      ...terms,
    },
    sandbox: {
      keyed: terms.keyed,
      keyTtlMs: terms.keyTtlMs ?? FOREVER_MS,
      readback: terms.readback.kind === "eventual" ? { lagMs: terms.readback.lagMs } : terms.readback.kind,
      inflightBoundMs: terms.inflightBoundMs,
    },
  };
}
