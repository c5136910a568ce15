/**
 * The seal of an arrival: that it came over Slack's wire, and as what. Whoever can write the table and has no secret of ours cannot
 * make a click of it.
 *
 * Messages and events need none: they decide nothing, and none is lost when the token is another one.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { canonicalJson } from "../../domain/canonical.js";
import type { JsonObject } from "../../domain/json.js";
import type { SlackConfig } from "../settings.js";
import type { InboxKind } from "./arrival.js";

/** What is sealed. */
export interface Sealable {
  readonly id: string;
  readonly key: string;
  readonly kind: InboxKind;
  readonly body: JsonObject;
}

/** Kinds by which a person decides or asks for something themselves. */
export const SEALED: ReadonlySet<InboxKind> = new Set(["action", "view", "command", "shortcut"]);

/** Made with the bot's token, which every process has. null: of this kind none is made. */
export function sealOf({ botToken }: Pick<SlackConfig, "botToken">, arrival: Sealable): string | null {
  const { id, key, kind, body } = arrival;
  if (!SEALED.has(kind)) return null;
  const text = canonicalJson(["countersign arrival", id, key, kind, body]);
  return createHmac("sha256", botToken).update(text, "utf8").digest("hex");
}

/** Whether a stored arrival is what came over Slack's wire; true of kinds that have no seal. */
export function isAsItCame(
  config: Pick<SlackConfig, "botToken">,
  arrival: Sealable & { readonly seal: string | null },
): boolean {
  const expected = sealOf(config, arrival);
  if (expected === null) return true;
  const given = Buffer.from(arrival.seal ?? "", "utf8");
  const right = Buffer.from(expected, "utf8");
  return given.length === right.length && timingSafeEqual(given, right);
}
