/** The demo's log: appended over restarts, and bounded. What is older than the last two files is gone. */
import { appendFileSync, renameSync, statSync } from "node:fs";

const LOG_MAX_BYTES = 10_000_000;

/** Appends text; a full file becomes `FILE.1` and a new one begins. */
export function openLog(file: string, maxBytes = LOG_MAX_BYTES): (text: string) => void {
  let size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return (text) => {
    if (size > 0 && size + text.length > maxBytes) {
      renameSync(file, `${file}.1`);
      size = 0;
    }
    appendFileSync(file, text);
    size += Buffer.byteLength(text);
  };
}
