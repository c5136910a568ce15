/**
 * The seal of an arrival: that it came over Slack's wire, and as what. Whoever can write the table and has no secret of ours cannot
 * make a click of it.
 *
 * Messages and events need none: they decide nothing, and none is lost when the token is another one.
 */
import type { JsonObject } from "../../domain/json.js";
import { sealsWith } from "../../domain/seals.js";
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

const partsOf = ({ id, key, kind, body }: Sealable) => [id, key, kind, body] as const;

/** Made with the bot's token, which every process has. null: of this kind none is made. */
export function sealOf({ botToken }: Pick<SlackConfig, "botToken">, arrival: Sealable): string | null {
  if (!SEALED.has(arrival.kind)) return null;
  return sealsWith({ secret: botToken }).make("arrival", partsOf(arrival));
}

/** Whether a stored arrival is what came over Slack's wire; true of kinds that have no seal. */
export function isAsItCame(
  { botToken }: Pick<SlackConfig, "botToken">,
  arrival: Sealable & { readonly seal: string | null },
): boolean {
  if (!SEALED.has(arrival.kind)) return true;
  return sealsWith({ secret: botToken }).holds("arrival", partsOf(arrival), arrival.seal);
}
