/** What decisions are sealed with, from the configuration. */
import type { SealsConfig, Secret } from "../../config/index.js";
import { type Seals, sealsWith } from "../../domain/seals.js";

/** Seals as the rooms take them. */
export const sealsOf = ({ secret, accepted }: SealsConfig): Seals =>
  sealsWith({ secret: secret.reveal(), accepted: accepted.map((each) => each.reveal()) });

/** Every secret that a seal is made or checked with, for the log's redaction. */
export const sealSecrets = ({ secret, accepted }: SealsConfig): readonly Secret[] => [secret, ...accepted];
