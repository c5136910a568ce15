import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";

/** @throws when the text is neither an id with this prefix nor the beginning of one: bad usage, whatever the database holds */
export function needIdLike(text: string, prefix: "op_" | "run_", what: string): void {
  const rest = text.startsWith(prefix) ? text.slice(prefix.length) : null;
  if (rest !== null && /^[0-9a-f]{1,32}$/.test(rest)) return;
  throw new CommandFailure(
    `"${text}" is no id of ${what === "operation" ? "an" : "a"} ${what}: they begin with ${prefix} and have letters a to f and digits.`,
    EXIT_BAD_USAGE,
  );
}
